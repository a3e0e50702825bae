package bus

import (
	"context"
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

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/accounts"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/services"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// source is the ce_source of what the ledger publishes.
const source = "weir/ledger"

// pollInterval is how often Accounts looks without a
// notification: a parked record moves a position and sends none,
// and the replica that published may be gone.
const pollInterval = time.Second

// accountsAtOnce is how many accounts are published together.
const accountsAtOnce = 500

// Accounts publishes the states of accounts. One replica does so at a time: the
// one whose connection holds an advisory lock. The lock ends with the
// connection, so another takes over at once.
//
// A round is read in one snapshot through that connection, published,
// acknowledged, followed by its marker, and only then recorded as published. A
// crash repeats a round; it can't lose one. The first change leaves at once,
// those behind it together after a pause.
type Accounts struct {
	Pool      *pgxpool.Pool
	Services  *services.Services
	Publisher *publisher.Publisher
	Clock     func() time.Time
	Logger    *slog.Logger
}

// Run publishes until ctx ends. A failure is logged, and tried
// again after a second.
func (a *Accounts) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := a.lead(ctx); err != nil && ctx.Err() == nil {
			a.Logger.Warn("cannot publish accounts", slog.String("error", err.Error()))
		}
		lifecycle.Pause(ctx, pollInterval)
	}
	return nil
}

// lead publishes rounds for as long as this replica holds the
// lock; it returns nil when another one does.
func (a *Accounts) lead(ctx context.Context) error {
	pooled, err := a.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("cannot get a connection: %w", err)
	}
	conn := pooled.Hijack() // it holds a lock and listens: it must not go back to the pool
	defer closeConn(conn)
	if mine, err := takeLead(ctx, conn); err != nil || !mine {
		return err
	}
	if err := asSystem(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error { return a.Services.Accounts.RepublishOnNewTerms(ctx, tx) }); err != nil {
		return fmt.Errorf("cannot compare the terms of the tiers: %w", err)
	}
	a.Logger.Info("publishing accounts")
	var round accounts.Round
	for ctx.Err() == nil {
		if round, err = a.publishRound(ctx, conn, round.Counted); err != nil {
			return err
		}
		lifecycle.Pause(ctx, pauseBehind(len(round.Accounts)))
		if err := awaitSignal(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

// takeLead tries to take the lock, and starts to listen.
func takeLead(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var mine bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtextextended('weir publish ' || current_schema(), 0))`).Scan(&mine); err != nil {
		return false, fmt.Errorf("cannot ask for the lead: %w", err)
	}
	if !mine {
		return false, nil
	}
	if _, err := conn.Exec(ctx, `LISTEN `+postgres.Channel); err != nil {
		return false, fmt.Errorf("cannot listen: %w", err)
	}
	return true, nil
}

// awaitSignal waits until a transaction has changed books, or for
// pollInterval. Signals that came meanwhile are one.
func awaitSignal(ctx context.Context, conn *pgx.Conn) error {
	waiting, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	_, err := conn.WaitForNotification(waiting)
	cancel()
	for err == nil {
		_, err = conn.WaitForNotification(waiting) // ended: returns only what has already arrived
	}
	if ctx.Err() == nil && !conn.IsClosed() && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// publishRound publishes what is due. before are the positions of the last marker.
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
	return round, asSystem(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error { return a.Services.Accounts.MarkPublished(ctx, tx, round) })
}

func (a *Accounts) nextRound(ctx context.Context, conn *pgx.Conn) (round accounts.Round, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = asSystem(ctx, conn, snapshot, func(tx pgx.Tx) error {
		round, err = a.Services.Accounts.NextRound(ctx, tx)
		return err
	})
	return round, err
}

// asSystem runs fn in a transaction of conn that sees all organizations.
func asSystem(ctx context.Context, conn *pgx.Conn, options pgx.TxOptions, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

func (a *Accounts) publishAccounts(ctx context.Context, round accounts.Round) error {
	var messages []*message.Message
	for _, state := range round.Accounts {
		messages = append(messages, accountMessage(newAccount(state, round.Counted), a.Clock()))
	}
	for _, state := range round.Deleted {
		messages = append(messages, tombstone(state, a.Clock()))
	}
	for some := range slices.Chunk(messages, accountsAtOnce) {
		if _, err := a.Publisher.PublishContext(ctx, contract.TopicAccounts, some...); err != nil {
			return fmt.Errorf("cannot publish %d accounts: %w", len(some), err)
		}
	}
	return nil
}

// tombstone takes back what was published of an account.
func tombstone(state ledger.AccountState, at time.Time) *message.Message {
	id := state.Organization.ID
	attributes := contract.Attributes{
		ID: id + "/" + strconv.FormatInt(state.Version, 10), Type: contract.TypeAccountChanged, Source: source, Time: at, Organization: id,
	}
	return newMessage(attributes, id, nil)
}

// newAccount is an account state as weir.accounts.v1 carries it.
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
			Project: b.Project, APIKey: b.Key, Bytes: b.Bytes, Used: b.Used, Exhausted: b.IsOut(), Since: b.Since,
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

// publishCounted publishes the marker after the acknowledgement of every
// account of its round, so a reader of it has read them.
func (a *Accounts) publishCounted(ctx context.Context, counted contract.Positions) error {
	at := a.Clock()
	attributes := contract.Attributes{
		ID: contract.AccountsCountedKey + "/" + strconv.FormatInt(at.UnixNano(), 10), Type: contract.TypeAccountsCounted, Source: source, Time: at,
	}
	marker := newMessage(attributes, contract.AccountsCountedKey, encode(contract.AccountsCounted{Counted: counted}))
	if _, err := a.Publisher.PublishContext(ctx, contract.TopicAccounts, marker); err != nil {
		return fmt.Errorf("cannot publish the marker: %w", err)
	}
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
	ctx, cancel := context.WithTimeout(context.Background(), pollInterval)
	defer cancel()
	_ = conn.Close(ctx)
}
