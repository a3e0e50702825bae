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
	var organizations, ids, bodies []string
	var times []time.Time
	for _, ch := range changes {
		if ch.founded {
			organizations, ids = append(organizations, ch.Organization), append(ids, ch.group+"/created")
			times, bodies = append(times, ch.First), append(bodies, createdBody(ch))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO facts (organization, id, type, at, body)
		SELECT organization, id, $3, at, body::jsonb FROM unnest($1::text[], $2::text[], $4::timestamptz[], $5::text[]) AS k (organization, id, at, body)
		 ORDER BY organization, id
		ON CONFLICT DO NOTHING`, organizations, ids, contract.TypeErrorGroupCreated, times, bodies)
	if err != nil {
		return fmt.Errorf("cannot save %d facts: %w", len(ids), err)
	}
	return nil
}

func createdBody(ch *change) string {
	body, err := json.Marshal(contract.ErrorGroupCreated{
		Organization: ch.Organization, Project: ch.Project, Group: ch.group, Title: storable(ch.about.Title),
		Type: storable(ch.about.Type), Culprit: storable(ch.about.Culprit), FirstSeen: ch.First.UTC(),
	})
	if err != nil {
		panic("BUG: cannot encode a fact: " + err.Error())
	}
	return string(body)
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
