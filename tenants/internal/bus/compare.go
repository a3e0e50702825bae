package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// Topics are the compacted topics of tenants, as they were read.
type Topics struct {
	Credentials map[string]weirbus.Record // by key
	Facts       map[string]bool           // keys of facts
}

// A comparison compares what topics have with the tables, as of now.
type comparison struct {
	*Publication
	tx        pgx.Tx
	topics    Topics
	published relay.Cursor // what is behind it may be on its way
	now       time.Time
	withdrawn map[string]bool // keys, by topic, that are being withdrawn
}

// Compare returns what the topics lack, or have too much. They were read
// before tx began, and after everything up to a cursor was published.
// again reads them once more, for what they have too much: its tombstone
// may have been published meanwhile.
func (p *Publication) Compare(ctx context.Context, tx pgx.Tx, topics Topics, again func(context.Context) (Topics, error), published relay.Cursor,
	now time.Time) (d relay.Difference, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return d, err
	}
	var unreadable []string
	topics.Credentials, unreadable = readable(topics.Credentials)
	c := comparison{Publication: p, tx: tx, topics: topics, published: published, now: now}
	if c.withdrawn, err = withdrawnKeys(ctx, tx); err != nil {
		return d, err
	}
	surplus, err := c.surplusCredentials(ctx, unreadable)
	if err != nil {
		return d, err
	}
	facts, err := c.surplusFacts(ctx)
	if err != nil {
		return d, err
	}
	if len(surplus)+len(facts) > 0 {
		left, err := again(ctx)
		if err != nil {
			return d, err
		}
		surplus, facts = left.having(surplus), left.having(facts)
	}
	states, err := c.missingCredentials(ctx, surplus)
	if err != nil {
		return d, err
	}
	from, missing, err := c.missingFacts(ctx)
	if err != nil {
		return d, err
	}
	d = relay.Difference{Publish: slices.Concat(surplus, facts, states), GoBack: missing > 0, From: from}
	if len(d.Publish)+missing > 0 {
		d.Lost = fmt.Sprintf("%d states of credentials, %d tombstones of credentials, %d facts, %d tombstones of facts",
			len(states), len(surplus), missing, len(facts))
	}
	return d, nil
}

// having returns the tombstones of what the topics have.
func (t Topics) having(tombstones []relay.Outgoing) []relay.Outgoing {
	return slices.DeleteFunc(tombstones, func(out relay.Outgoing) bool {
		key := out.Message.Metadata[weirbus.KeyMetadata]
		_, credential := t.Credentials[key]
		return !credential && !t.Facts[key]
	})
}

func withdrawnKeys(ctx context.Context, tx pgx.Tx) (map[string]bool, error) {
	rows, err := tx.Query(ctx, `SELECT topic || ' ' || key FROM withdrawals`)
	if err != nil {
		return nil, fmt.Errorf("cannot read what is being withdrawn: %w", err)
	}
	return collectSet(rows)
}

func collectSet(rows pgx.Rows) (map[string]bool, error) {
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	set := make(map[string]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set, err
}

// Compared is the marker of a comparison in a start of the process.
func Compared(start string, at time.Time) (*message.Message, error) {
	value, err := json.Marshal(contract.CredentialsCompared{Start: start})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the marker: %w", err)
	}
	attributes := contract.Attributes{
		ID: contract.CredentialsComparedKey + "/" + at.UTC().Format(time.RFC3339Nano), Type: contract.TypeCredentialsCompared, Source: Source, Time: at,
	}
	m := message.NewMessage(attributes.ID, value)
	m.Metadata = attributes.Headers()
	m.Metadata[weirbus.KeyMetadata] = contract.CredentialsComparedKey
	return m, nil
}
