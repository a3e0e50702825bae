package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// WithdrawalsName names the relay's cursor of withdrawals. It is stored.
const WithdrawalsName = "tenants-withdrawals"

// Withdrawals withdraw from compacted topics
// what was published of erased events.
type Withdrawals struct {
	publication *Publication
	clock       func() time.Time
}

// NewWithdrawals returns the withdrawals of a publication.
func NewWithdrawals(publication *Publication, clock func() time.Time) *Withdrawals {
	return &Withdrawals{publication, clock}
}

// Published reports whether all events of an organization are
// published: else what is withdrawn now would be published later.
func (w *Withdrawals) Published(ctx context.Context, tx pgx.Tx, organization string) (published bool, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce((SELECT max(position) FROM events WHERE organization = $1), 0)
		<= coalesce((SELECT position FROM bus_relays WHERE name = $2), 0)`, organization, RelayName).Scan(&published)
	if err != nil {
		return false, fmt.Errorf("cannot find whether all of %q is published: %w", organization, err)
	}
	return published, nil
}

// Withdraw withdraws all that was published of a stream. tx must hold
// the lock to append, so that withdrawals are in the order of commits.
func (w *Withdrawals) Withdraw(ctx context.Context, tx pgx.Tx, stream eventstore.Stream) error {
	return w.withdraw(ctx, tx, Gone{Stream: stream}, contract.TopicCredentials, contract.TopicTenants)
}

// A Gone is what is removed of a stream.
type Gone struct {
	Stream   eventstore.Stream
	Versions []int64 // nil: all
}

// WithdrawFacts withdraws the facts of aged events: without the
// events, nothing would lead to the facts when the organization
// is deleted. If there are any, it takes the lock to append.
func (w *Withdrawals) WithdrawFacts(ctx context.Context, tx pgx.Tx, gone []Gone) error {
	factual, err := w.withFacts(ctx, tx, gone)
	if err != nil || len(factual) == 0 {
		return err
	}
	if err := eventstorepg.LockAppends(ctx, tx); err != nil {
		return err
	}
	for _, g := range factual {
		if err := w.withdraw(ctx, tx, g, contract.TopicTenants); err != nil {
			return err
		}
	}
	return nil
}

// withFacts are those of streams with facts.
func (w *Withdrawals) withFacts(ctx context.Context, tx pgx.Tx, gone []Gone) (factual []Gone, err error) {
	organizations, names := make([]string, len(gone)), make([]string, len(gone))
	for i, g := range gone {
		organizations[i], names[i] = g.Stream.Organization, g.Stream.Name
	}
	rows, err := tx.Query(ctx, `SELECT DISTINCT s.number FROM events JOIN unnest($1::text[], $2::text[]) WITH ORDINALITY s (organization, stream, number)
		USING (organization, stream) WHERE name = ANY($3) ORDER BY 1`, organizations, names, factualEvents())
	if err != nil {
		return nil, fmt.Errorf("cannot find of which streams facts are published: %w", err)
	}
	var number int
	_, err = pgx.ForEachRow(rows, []any{&number}, func() error {
		factual = append(factual, gone[number-1])
		return nil
	})
	return factual, err
}

// factualEvents are the names of events published as facts.
func factualEvents() (names []string) {
	for _, event := range tenants.Events() {
		if len(facts("", event, tenants.Fold(event))) > 0 {
			names = append(names, tenants.EventName(event))
		}
	}
	return names
}

// withdraw withdraws from some topics what was published of events.
func (w *Withdrawals) withdraw(ctx context.Context, tx pgx.Tx, gone Gone, topics ...string) error {
	stream := gone.Stream
	history, err := w.publication.events.ReadOutwardTx(ctx, tx, stream)
	if err != nil {
		return err
	}
	seen := map[[2]string]bool{}
	for i, r := range history {
		if tenants.PublicationOf(r.Event) == tenants.Unpublished || gone.Versions != nil && !slices.Contains(gone.Versions, r.Version) {
			continue
		}
		messages, err := published(r, history[:i+1])
		if err != nil {
			return fmt.Errorf("cannot withdraw %q version %d: %w", stream, r.Version, err)
		}
		for _, m := range messages {
			place := [2]string{m.Topic, m.Message.Metadata[weirbus.KeyMetadata]}
			if seen[place] || !slices.Contains(topics, m.Topic) {
				continue
			}
			seen[place] = true
			if err := keepWithdrawal(ctx, tx, stream.Organization, m, r.Event); err != nil {
				return err
			}
		}
	}
	return nil
}

func keepWithdrawal(ctx context.Context, tx pgx.Tx, organization string, m relay.Outgoing, event tenants.Event) error {
	instead, err := anonymized(event)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO withdrawals (organization, topic, key, type, value) VALUES ($1, $2, $3, $4, $5)`,
		organization, m.Topic, m.Message.Metadata[weirbus.KeyMetadata], m.Message.Metadata[contract.HeaderType], instead)
	if err != nil {
		return fmt.Errorf("cannot keep what is withdrawn: %w", err)
	}
	return nil
}

// WithdrawDeletions withdraws what was published of the deletions
// of an organization and its projects, as Withdraw does.
func (w *Withdrawals) WithdrawDeletions(ctx context.Context, tx pgx.Tx, organization string) error {
	rows, err := tx.Query(ctx, `SELECT DISTINCT stream FROM events WHERE organization = $1 AND starts_with(stream, $2)`, organization, DeletionStreams)
	if err != nil {
		return fmt.Errorf("cannot find the deletions of %q: %w", organization, err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("cannot read the deletions of %q: %w", organization, err)
	}
	for _, name := range names {
		if err := w.Withdraw(ctx, tx, eventstore.Stream{Organization: organization, Name: name}); err != nil {
			return err
		}
	}
	return nil
}

// WithdrawCreation withdraws the anonymized rest of an organization.
func (w *Withdrawals) WithdrawCreation(ctx context.Context, tx pgx.Tx, organization string) error {
	_, err := tx.Exec(ctx, `INSERT INTO withdrawals (organization, topic, key, type)
		SELECT organization, $2, $3 || '/' || position, $3 FROM events WHERE organization = $1 AND stream = 'organization/' || $1 AND version = 1`,
		organization, contract.TopicTenants, contract.TypeOrganizationCreated)
	if err != nil {
		return fmt.Errorf("cannot withdraw that %q was created: %w", organization, err)
	}
	return nil
}

// anonymized is what replaces a fact instead of a tombstone, nil
// for most: the ledger derives its books from tier and time.
func anonymized(event tenants.Event) (*string, error) {
	created, ok := event.(tenants.OrganizationCreated)
	if !ok {
		return nil, nil //nolint:nilnil // a tombstone
	}
	value, err := json.Marshal(contract.OrganizationCreated{Organization: created.Organization, Tier: string(created.Tier), CreatedAt: created.At})
	text := string(value)
	return &text, err
}

// Read is a relay's source.
func (w *Withdrawals) Read(ctx context.Context, tx pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
	rows, err := tx.Query(ctx, `SELECT organization, position, topic, key, type, value FROM withdrawals WHERE position > $1 ORDER BY position LIMIT $2`,
		after.Position, limit)
	if err != nil {
		return nil, fmt.Errorf("cannot read what is withdrawn: %w", err)
	}
	return pgx.CollectRows(rows, w.scan)
}

func (w *Withdrawals) scan(row pgx.CollectableRow) (out relay.Outgoing, err error) {
	var organization, key, kind string
	var value *string
	if err := row.Scan(&organization, &out.Cursor.Position, &out.Topic, &key, &kind, &value); err != nil {
		return out, err
	}
	attributes := contract.Attributes{
		ID: key + "/withdrawn/" + strconv.FormatInt(out.Cursor.Position, 10), Type: kind, Source: Source, Time: w.clock(), Organization: organization,
	}
	out.Message = message.NewMessage(attributes.ID, nil)
	if value != nil {
		out.Message.Payload = []byte(*value)
	}
	out.Message.Metadata = attributes.Headers()
	out.Message.Metadata[weirbus.KeyMetadata] = key
	return out, nil
}

// Settle removes an organization's published
// withdrawals, and reports whether these were all.
func (w *Withdrawals) Settle(ctx context.Context, tx pgx.Tx, organization string, limit int) (removed int64, all bool, err error) {
	tag, err := tx.Exec(ctx, `DELETE FROM withdrawals WHERE organization = $1 AND position IN (
			SELECT position FROM withdrawals WHERE organization = $1 AND position <= (SELECT position FROM bus_relays WHERE name = $2) ORDER BY position LIMIT $3)`,
		organization, WithdrawalsName, limit)
	if err != nil {
		return 0, false, fmt.Errorf("cannot remove what is withdrawn: %w", err)
	}
	err = tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM withdrawals WHERE organization = $1)`, organization).Scan(&all)
	return tag.RowsAffected(), all, err
}

// Name implements prune.Table.
func (w *Withdrawals) Name() string { return "withdrawals" }

// Keeps implements prune.Table.
func (w *Withdrawals) Keeps() string {
	return "what is taken back until that is published, and of deletions until they are finished"
}

// withdrawalBatch is how many one transaction removes.
const withdrawalBatch = 10_000

// Prune implements prune.Table. Withdrawals of
// deletions are removed with these, which count them.
func (w *Withdrawals) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM withdrawals WHERE position IN (
		SELECT position FROM withdrawals w WHERE position <= (SELECT position FROM bus_relays WHERE name = $1)
		   AND NOT EXISTS (SELECT FROM erasures e WHERE e.organization = w.organization AND e.erased_at IS NULL)
		 ORDER BY position LIMIT $2)`, WithdrawalsName, withdrawalBatch)
	return tag.RowsAffected(), tag.RowsAffected() == withdrawalBatch, err
}

// Oldest implements prune.Table: withdrawals
// are published at once, so they have no age.
func (w *Withdrawals) Oldest(context.Context, pgx.Tx) (time.Time, error) { return time.Time{}, nil }
