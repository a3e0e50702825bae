package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

// queueFacts puts facts into the outbox. A fact that was said before is not said again.
func queueFacts(batch *pgx.Batch, facts []ledger.Fact) {
	for _, fact := range facts {
		kind, body := factBody(fact)
		batch.Queue(`INSERT INTO facts (organization, id, type, at, body) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
			fact.Organization, fact.ID(), kind, fact.Cause.At, body)
	}
}

// factBody is a fact as weir.ledger.v1 carries it.
func factBody(fact ledger.Fact) (kind string, body []byte) {
	var value any
	switch fact.Kind {
	case ledger.ThresholdReached:
		kind, value = contract.TypeThresholdReached, contract.ThresholdReached{
			Organization: fact.Organization, PeriodStart: fact.Book.Period.Start, Percent: fact.Percent,
			Quota: fact.Book.Granted(), Used: fact.Book.Used(), Batch: fact.Cause.Batch, At: fact.Cause.At,
		}
	case ledger.QuotaExhausted:
		kind, value = contract.TypeQuotaExhausted, contract.QuotaExhausted{
			Organization: fact.Organization, PeriodStart: fact.Book.Period.Start, PeriodEnd: fact.Book.Period.End,
			Quota: fact.Book.Granted(), Used: fact.Book.Used(), At: fact.Cause.At,
		}
	default:
		panic(fmt.Sprintf("BUG: no event for a fact of kind %d", fact.Kind))
	}
	body, err := json.Marshal(value)
	if err != nil {
		panic("BUG: cannot encode a fact: " + err.Error())
	}
	return kind, body
}

// A StoredFact is a fact in the outbox.
type StoredFact struct {
	Transaction  uint64
	Position     int64
	Organization string
	ID           string
	Type         string
	At           time.Time
	Body         []byte
}

// FactsAfter reads at most limit facts behind a place in the outbox, in the order of their commits: only of transactions
// older than every one that still runs, so that none can appear before a fact that was already read.
func FactsAfter(ctx context.Context, tx pgx.Tx, transaction uint64, position int64, limit int) ([]StoredFact, error) {
	rows, err := tx.Query(ctx, `SELECT transaction::text::bigint, position, organization, id, type, at, body::text
		FROM facts
		WHERE (transaction, position) > ($1::text::xid8, $2) AND transaction < pg_snapshot_xmin(pg_current_snapshot())
		ORDER BY transaction, position LIMIT $3`, fmt.Sprint(transaction), position, limit)
	if err != nil {
		return nil, err
	}
	var facts []StoredFact
	var f StoredFact
	var body string
	_, err = pgx.ForEachRow(rows, []any{&f.Transaction, &f.Position, &f.Organization, &f.ID, &f.Type, &f.At, &body}, func() error {
		f.Body = []byte(body)
		facts = append(facts, f)
		return nil
	})
	return facts, err
}
