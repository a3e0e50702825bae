package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// queueLines adds to what statements will have.
func queueLines(batch *pgx.Batch, organization string, lines []ledger.Line) {
	for _, l := range lines {
		batch.Queue(`INSERT INTO period_lines AS p (organization, period_start, kind, subject, of_period, bytes) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (organization, period_start, kind, subject, of_period) DO UPDATE SET bytes = p.bytes + excluded.bytes`,
			organization, l.Start, l.Kind, l.Subject, l.Of, l.Bytes)
	}
}

// linesSince reads the lines of an organization's periods that began at an instant or later.
func linesSince(ctx context.Context, tx pgx.Tx, organization string, start time.Time) (lines []ledger.Line, err error) {
	rows, err := tx.Query(ctx, `SELECT kind, period_start, subject, of_period, bytes FROM period_lines
		WHERE organization = $1 AND period_start >= $2 ORDER BY period_start, kind, subject, of_period`, organization, start)
	if err != nil {
		return nil, err
	}
	var l ledger.Line
	_, err = pgx.ForEachRow(rows, []any{&l.Kind, &l.Start, &l.Subject, &l.Of, &l.Bytes}, func() error {
		l.Start, l.Of = l.Start.UTC(), l.Of.UTC()
		lines = append(lines, l)
		return nil
	})
	return lines, err
}
