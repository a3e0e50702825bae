package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
)

// A Decided is a stored decision.
type Decided struct {
	Organization string
	Number       int64
	Decision     ledger.Decision
	At           time.Time          // time of recording
	Behind       contract.Positions // next offsets booked before it
	Chained      Chained
}

// decisionPageSize is how many decisions are read together.
const decisionPageSize = 1000

// NumbersOfDecisions returns how many decisions about each organization
// are in its books.
func NumbersOfDecisions(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	rows, err := tx.Query(ctx, `SELECT organization, decisions FROM organizations`)
	if err != nil {
		return nil, err
	}
	numbers := map[string]int64{}
	var organization string
	var number int64
	_, err = pgx.ForEachRow(rows, []any{&organization, &number}, func() error {
		numbers[organization] = number
		return nil
	})
	return numbers, err
}

// AllDecided returns the decisions of all organizations in commit
// order, those after a position of the event store, without erased
// ones. It ends at the first error.
func AllDecided(ctx context.Context, tx pgx.Tx, store *DecisionStore, position int64) iter.Seq2[Decided, error] {
	return func(yield func(Decided, error) bool) {
		after := eventstore.Cursor(position)
		for {
			page, err := store.ReadAll(ctx, tx, after, decisionPageSize)
			if err != nil {
				yield(Decided{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, recorded := range page {
				if !yield(decidedOf(recorded)) {
					return
				}
			}
			after = page[len(page)-1].Cursor
		}
	}
}

// errUndated is the error for decisions from before 2026-11, stored
// without a time.
var errUndated = errors.New("it was stored without its time or its positions of the log")

func decidedOf(recorded eventstore.Recorded[ledger.Decision]) (d Decided, err error) {
	d = Decided{Organization: recorded.Stream.Organization, Number: recorded.Version, Decision: recorded.Event}
	at, positions := recorded.Metadata[DecidedAt], recorded.Metadata[BookedBehind]
	if at == "" || positions == "" {
		err = errUndated
	} else if d.At, err = time.Parse(time.RFC3339Nano, at); err == nil {
		err = errors.Join(json.Unmarshal([]byte(positions), &d.Behind), d.Chained.parse(recorded.Metadata[ChainedBy]))
	}
	if err != nil {
		return d, fmt.Errorf("cannot read decision %d about organization %q: %w", d.Number, d.Organization, err)
	}
	return d, nil
}
