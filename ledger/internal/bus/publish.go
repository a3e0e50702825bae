package bus

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/accounts"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/services"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
)

// source is the ce_source of what the ledger publishes.
const source = "weir/ledger"

// How often Accounts polls without a notification.
const (
	leadInterval   = time.Second     // the replica that published may be gone
	signalInterval = 5 * time.Second // a parked record moves a position silently
)

// accountsPerPublish is how many accounts are published together.
const accountsPerPublish = 500

// Accounts publishes account states. Only the replica with the advisory
// lock publishes. The lock ends with its connection, so another replica
// takes over at once.
//
// Each round is read in one snapshot on that connection, published and
// acknowledged. Its marker follows, and then the round is recorded as
// published. A crash repeats a round, but loses none. The first change
// is published at once. Later changes wait for a short pause and go together.
// What the topic loses afterwards is published again: see heal.
type Accounts struct {
	Pool        *pgxpool.Pool
	Services    *services.Services
	Publisher   *publisher.Publisher
	CaughtUp    func() bool // the books have caught up with the log
	Republished prometheus.Counter
	Clock       func() time.Time
	Logger      *slog.Logger

	compareAt time.Time // when the accounts are compared with the topic next
	last      int64     // offset of the last marker
}

// Run publishes until ctx ends. It logs a failure and retries after a second.
func (a *Accounts) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := a.lead(ctx); err != nil && ctx.Err() == nil {
			a.Logger.Warn("cannot publish accounts", slog.String("error", err.Error()))
		}
		lifecycle.Pause(ctx, leadInterval)
	}
	return nil
}

// lead publishes rounds while this replica holds the lock. It returns
// nil when another replica holds it.
func (a *Accounts) lead(ctx context.Context) error {
	pooled, err := a.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("cannot get a connection: %w", err)
	}
	conn := pooled.Hijack() // it holds a lock and listens: it must not go back to the pool
	defer closeConn(conn)
	if acquired, err := acquireLead(ctx, conn); err != nil || !acquired {
		return err
	}
	a.Logger.Info("publishing accounts")
	a.compareAt, a.last = time.Time{}, -1
	var round accounts.Round
	for ctx.Err() == nil {
		if err := a.heal(ctx, conn); err != nil {
			return err
		}
		if round, err = a.publishRound(ctx, conn, round.Counted); err != nil {
			return err
		}
		lifecycle.Pause(ctx, pauseAfter(len(round.Accounts)))
		if err := awaitSignal(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

// acquireLead tries to take the lock and starts to listen.
func acquireLead(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var acquired bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtextextended('weir publish ' || current_schema(), 0))`).Scan(&acquired); err != nil {
		return false, fmt.Errorf("cannot ask for the lead: %w", err)
	}
	if !acquired {
		return false, nil
	}
	if _, err := conn.Exec(ctx, `LISTEN `+postgres.Channel); err != nil {
		return false, fmt.Errorf("cannot listen: %w", err)
	}
	return true, nil
}

// awaitSignal waits for a notification, at most signalInterval.
// Notifications that came meanwhile count as one.
func awaitSignal(ctx context.Context, conn *pgx.Conn) error {
	waiting, cancel := context.WithTimeout(ctx, signalInterval)
	defer cancel()
	if pg.Hear(waiting, conn); conn.IsClosed() && ctx.Err() == nil {
		return errors.New("cannot wait for notifications: the connection is lost")
	}
	return ctx.Err()
}

// publishRound publishes what is due. before are the last marker's positions.
func (a *Accounts) publishRound(ctx context.Context, conn *pgx.Conn, before contract.Positions) (accounts.Round, error) {
	round, err := a.nextRound(ctx, conn)
	if err != nil {
		return round, fmt.Errorf("cannot read the accounts that are due: %w", err)
	}
	if len(round.Accounts)+len(round.Deleted) == 0 && maps.Equal(round.Counted, before) {
		return round, nil
	}
	if err := a.publishAccounts(ctx, round); err != nil {
		return round, err
	}
	if err := a.publishCounted(ctx, round.Counted); err != nil {
		return round, err
	}
	return round, pg.InTxAsSystem(ctx, conn, func(tx pgx.Tx) error { return a.Services.Accounts.MarkPublished(ctx, tx, round) })
}

func (a *Accounts) nextRound(ctx context.Context, conn *pgx.Conn) (round accounts.Round, err error) {
	err = pg.SnapshotAsSystem(ctx, conn, func(tx pgx.Tx) error {
		round, err = a.Services.Accounts.NextRound(ctx, tx)
		return err
	})
	return round, err
}

func (a *Accounts) publishAccounts(ctx context.Context, round accounts.Round) error {
	var messages []*message.Message
	for _, state := range round.Accounts {
		messages = append(messages, accountMessage(newAccount(state, round.Counted), a.Clock()))
	}
	for _, state := range round.Deleted {
		messages = append(messages, tombstone(state, a.Clock()))
	}
	for chunk := range slices.Chunk(messages, accountsPerPublish) {
		if _, err := a.Publisher.PublishContext(ctx, contract.TopicAccounts, chunk...); err != nil {
			return fmt.Errorf("cannot publish %d accounts: %w", len(chunk), err)
		}
	}
	return nil
}

// tombstone withdraws a published account.
func tombstone(state ledger.AccountState, at time.Time) *message.Message {
	id := state.Organization.ID
	attributes := contract.Attributes{
		ID: id + "/" + strconv.FormatInt(state.Version, 10), Type: contract.TypeAccountChanged, Source: source, Time: at, Organization: id,
	}
	return newMessage(attributes, id, nil)
}

// newAccount maps an account state to weir.accounts.v1.
func newAccount(state ledger.AccountState, counted contract.Positions) contract.Account {
	o, book := state.Organization, state.Book
	account := contract.Account{
		Organization: o.ID, Tier: string(state.Tier), RequestsPerMinute: state.RequestsPerMinute, AnchorDay: o.AnchorDayAt(book.Period.End),
		PeriodStart: book.Period.Start.UTC(), PeriodEnd: book.Period.End.UTC(),
		Quota: book.Allowance(), NextQuota: state.NextQuota, OverageCap: state.Overage, NextOverageCap: state.NextOverage,
		Used: book.Used(), State: state.State, Raises: book.Raises, RetentionDays: state.RetentionDays, Counted: counted, Version: state.Version,
	}
	for _, b := range state.Budgets {
		account.Budgets = append(account.Budgets, contract.AccountBudget{
			Project: b.Project, APIKey: b.Key, Bytes: b.Bytes, Used: b.Used, Exhausted: b.IsExhausted(), Since: b.Since,
		})
	}
	return account
}

func accountMessage(account contract.Account, at time.Time) *message.Message {
	attributes := contract.Attributes{
		ID: account.Organization + "/" + strconv.FormatInt(account.Version, 10), Type: contract.TypeAccountChanged,
		Source: source, Time: at, Organization: account.Organization,
	}
	return newMessage(attributes, account.Organization, encode(account))
}

// publishCounted publishes the marker once every account of its round
// is acknowledged. Anyone who reads it has read them.
func (a *Accounts) publishCounted(ctx context.Context, counted contract.Positions) error {
	at := a.Clock()
	attributes := contract.Attributes{
		ID: contract.AccountsCountedKey + "/" + strconv.FormatInt(at.UnixNano(), 10), Type: contract.TypeAccountsCounted, Source: source, Time: at,
	}
	marker := newMessage(attributes, contract.AccountsCountedKey, encode(contract.AccountsCounted{Counted: counted}))
	places, err := a.Publisher.PublishContext(ctx, contract.TopicAccounts, marker)
	if err != nil {
		return fmt.Errorf("cannot publish the marker: %w", err)
	}
	a.see(places[0])
	return nil
}

func newMessage(attributes contract.Attributes, key string, payload []byte) *message.Message {
	m := message.NewMessage(attributes.ID, payload)
	for name, value := range attributes.Headers() {
		m.Metadata.Set(name, value)
	}
	m.Metadata.Set(bus.KeyMetadata, key)
	return m
}

func encode(value any) []byte {
	payload, err := json.Marshal(value)
	if err != nil {
		panic("BUG: cannot encode an event: " + err.Error())
	}
	return payload
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), leadInterval)
	defer cancel()
	_ = conn.Close(ctx)
}

// SaveEvents appends events to the outbox.
func SaveEvents(ctx context.Context, tx pgx.Tx, events []ledger.Event) error {
	facts := make([]outbox.Fact, len(events))
	for i, event := range events {
		facts[i] = outboxFact(event)
	}
	return outbox.Save(ctx, tx, facts)
}

// outboxFact maps an event to the outbox.
func outboxFact(event ledger.Event) outbox.Fact {
	kind, body := eventBody(event)
	return outbox.Fact{Organization: event.Organization, ID: event.ID(), Type: kind, At: event.Cause.At, Body: encode(body)}
}

// eventBody maps an event to weir.ledger.v1.
func eventBody(e ledger.Event) (kind string, body any) {
	book, at := e.Book, e.Cause.At
	start, end, quota, used := book.Period.Start, book.Period.End, book.Allowance(), book.Used()
	switch e.Kind {
	case ledger.ThresholdReached:
		return contract.TypeThresholdReached, contract.ThresholdReached{
			Organization: e.Organization, PeriodStart: start, Percent: e.Percent, Quota: quota, Used: used, Batch: e.Cause.Batch, At: at, Test: e.Test,
		}
	case ledger.QuotaExhausted:
		return contract.TypeQuotaExhausted, contract.QuotaExhausted{
			Organization: e.Organization, PeriodStart: start, PeriodEnd: end, Quota: quota, Used: used, At: at, Test: e.Test,
		}
	case ledger.QuotaRestored:
		return contract.TypeQuotaRestored, contract.QuotaRestored{
			Organization: e.Organization, PeriodStart: start, PeriodEnd: end, Quota: quota, Used: used, At: at, Test: e.Test,
		}
	case ledger.OverageBegun:
		return contract.TypeOverageBegun, contract.OverageBegun{
			Organization: e.Organization, PeriodStart: start, PeriodEnd: end, Quota: quota, Used: used, At: at, Test: e.Test,
		}
	case ledger.TierChanged:
		return contract.TypeTierChanged, contract.TierChanged{Organization: e.Organization, Before: string(e.Before), Tier: string(e.After), At: at, Test: e.Test}
	case ledger.GrantExpiring:
		return contract.TypeGrantExpiring, contract.GrantExpiring{
			Organization: e.Organization, Grant: e.Grant.ID, Remaining: e.Grant.Remaining, ExpiresAt: e.Grant.Expires, At: at, Test: e.Test,
		}
	case ledger.GrantHasExpired:
		return contract.TypeGrantExpired, contract.GrantExpired{Organization: e.Organization, Grant: e.Grant.ID, Expired: e.Grant.Expired, At: at, Test: e.Test}
	case ledger.PeriodClosed:
		balances := book.Balances
		return contract.TypePeriodClosed, contract.PeriodClosed{
			Organization: e.Organization, PeriodStart: start, PeriodEnd: end, Granted: book.Granted(), Consumed: balances[ledger.Consumed],
			Overage: balances[ledger.Overage], Expired: balances[ledger.Expired], Voided: balances[ledger.Voided],
			Overshoot: balances[ledger.Overshoot], At: at, Test: e.Test,
		}
	case ledger.StatementReady:
		return contract.TypeStatementReady, contract.StatementReady{
			Organization: e.Organization, Statement: e.Number, Hash: hex.EncodeToString(e.Hash[:]),
			PeriodStart: start, PeriodEnd: end, Used: used, Overage: book.Balances[ledger.Overage],
			At: at, Test: e.Test,
		}
	case ledger.BooksAdjusted:
		return contract.TypeAdjusted, newAdjusted(e)
	}
	if kind, body := budgetBody(e); kind != "" {
		return kind, body
	}
	panic(fmt.Sprintf("BUG: no contract for an event of kind %d", e.Kind))
}

// budgetBody maps an event about a budget; empty for any other.
func budgetBody(e ledger.Event) (kind string, body any) {
	b, start, end, at := e.Budget, e.Book.Period.Start, e.Book.Period.End, e.Cause.At
	switch e.Kind {
	case ledger.BudgetThresholdReached:
		return contract.TypeBudgetThresholdReached, contract.BudgetThresholdReached{
			Organization: e.Organization, Project: b.Project, APIKey: b.Key, PeriodStart: start, PeriodEnd: end, Percent: e.Percent,
			Budget: b.Bytes, Used: b.Used, Batch: e.Cause.Batch, At: at, Test: e.Test,
		}
	case ledger.BudgetExhausted:
		return contract.TypeBudgetExhausted, contract.BudgetExhausted{
			Organization: e.Organization, Project: b.Project, APIKey: b.Key, PeriodStart: start, PeriodEnd: end, Budget: b.Bytes, Used: b.Used, At: at, Test: e.Test,
		}
	case ledger.BudgetRestored:
		return contract.TypeBudgetRestored, contract.BudgetRestored{
			Organization: e.Organization, Project: b.Project, APIKey: b.Key, PeriodStart: start, PeriodEnd: end, Budget: b.Bytes, Used: b.Used, At: at, Test: e.Test,
		}
	}
	return "", nil
}

func newAdjusted(e ledger.Event) contract.Adjusted {
	adjusted := contract.Adjusted{
		Organization: e.Organization, Adjustment: e.Subject, Bytes: e.Amount, PeriodStart: e.Book.Period.Start, At: e.Cause.At, Test: e.Test,
	}
	if !e.Of.IsZero() {
		adjusted.OfPeriodStart = &e.Of
	}
	return adjusted
}

// RelayName names the relay's cursor in the outbox. It is stored:
// another name would publish everything again.
const RelayName = "ledger.facts"

// Outbox returns the outbox of weir.ledger.v1.
func Outbox() outbox.Outbox { return outbox.Outbox{Topic: contract.TopicLedger, Source: source} }

// Bounds of the pause between rounds of account states.
const (
	shortestPause = 400 * time.Millisecond // each round costs as much as a transaction of charges, and all followers read it
	longestPause  = time.Second            // so that a change applies everywhere within about a second
	pausePerState = time.Second / 5000
)

// pauseAfter returns the pause after a round of so many states. Each
// commit changes accounts, and every follower reads every state. The
// pause bounds their number by the accounts, not the commits.
func pauseAfter(states int) time.Duration {
	return min(max(shortestPause, time.Duration(states)*pausePerState), longestPause)
}
