package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
)

// Fact is a fact in the outbox.
type Fact struct {
	Transaction  uint64
	Position     int64
	Organization string
	ID           string
	Type         string
	At           time.Time
	Body         []byte
}

// saveFacts says which groups were founded.
func saveFacts(ctx context.Context, tx pgx.Tx, changes []*change) error {
	batch := &pgx.Batch{}
	for _, ch := range changes {
		if !ch.founded {
			continue
		}
		body, err := json.Marshal(contract.ErrorGroupCreated{
			Organization: ch.Organization, Project: ch.Project, Group: ch.group, Title: storable(ch.about.Title),
			Type: storable(ch.about.Type), Culprit: storable(ch.about.Culprit), FirstSeen: ch.First.UTC(),
		})
		if err != nil {
			return fmt.Errorf("cannot encode the fact of group %q: %w", ch.group, err)
		}
		batch.Queue(`INSERT INTO facts (organization, id, type, at, body) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
			ch.Organization, ch.group+"/created", contract.TypeErrorGroupCreated, ch.First, body)
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("cannot save facts: %w", err)
	}
	return nil
}

// FactsAfter reads at most limit facts behind a place in the outbox, in the order of their commits: only of transactions
// older than every one that still runs, so that none can appear before a fact that was already read.
func FactsAfter(ctx context.Context, tx pgx.Tx, transaction uint64, position int64, limit int) ([]Fact, error) {
	rows, err := tx.Query(ctx, `SELECT transaction::text::bigint, position, organization, id, type, at, body::text
		FROM facts
		WHERE (transaction, position) > ($1::text::xid8, $2) AND transaction < pg_snapshot_xmin(pg_current_snapshot())
		ORDER BY transaction, position LIMIT $3`, strconv.FormatUint(transaction, 10), position, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Fact, err error) {
		var body string
		err = row.Scan(&f.Transaction, &f.Position, &f.Organization, &f.ID, &f.Type, &f.At, &body)
		f.Body = []byte(body)
		return f, err
	})
}
