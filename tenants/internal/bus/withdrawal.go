package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// WithdrawalsName is under which name the relay keeps how far it has withdrawn what was published.
// It is data.
const WithdrawalsName = "tenants-withdrawals"

// Withdrawals take back from compacted topics what was published of events that are erased.
type Withdrawals struct {
	publication *Publication
	clock       func() time.Time
}

// NewWithdrawals returns the withdrawals of a publication.
func NewWithdrawals(publication *Publication, clock func() time.Time) *Withdrawals {
	return &Withdrawals{publication, clock}
}

// Published reports whether all events of an organization are published: what is withdrawn before
// would be published behind that.
func (w *Withdrawals) Published(ctx context.Context, tx pgx.Tx, organization string) (published bool, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce((SELECT max(position) FROM events WHERE organization = $1), 0)
		<= coalesce((SELECT position FROM bus_relays WHERE name = $2), 0)`, organization, RelayName).Scan(&published)
	if err != nil {
		return false, fmt.Errorf("cannot tell whether all of %q is published: %w", organization, err)
	}
	return published, nil
}

// Withdraw withdraws all that was published of a stream. The caller's transaction has the turn to
// append, so that withdrawals are in the order of commits.
func (w *Withdrawals) Withdraw(ctx context.Context, tx pgx.Tx, stream eventstore.Stream) error {
	history, err := w.publication.events.ReadTx(ctx, tx, stream)
	if err != nil {
		return err
	}
	seen := map[[2]string]bool{}
	for i, r := range history {
		if r.Event.Publication() == tenants.Unpublished {
			continue
		}
		messages, err := published(r, history[:i+1])
		if err != nil {
			return fmt.Errorf("cannot withdraw %q version %d: %w", stream, r.Version, err)
		}
		for _, m := range messages {
			place := [2]string{m.Topic, m.Message.Metadata[weirbus.KeyMetadata]}
			if seen[place] {
				continue
			}
			seen[place] = true
			if err := withdraw(ctx, tx, stream.Organization, m, r.Event); err != nil {
				return err
			}
		}
	}
	return nil
}

func withdraw(ctx context.Context, tx pgx.Tx, organization string, m relay.Outgoing, event tenants.Event) error {
	instead, err := nameless(event)
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

// nameless is what replaces a fact instead of a tombstone, nil for most: the ledger makes its books
// from tier and time.
func nameless(event tenants.Event) (*string, error) {
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
	if err := pg.AsSystem(ctx, tx); err != nil {
		return nil, err
	}
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

// Settle removes what is withdrawn of an organization, and reports whether that was all.
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
