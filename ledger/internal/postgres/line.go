package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// queueLines adds lines to coming statements.
func queueLines(batch *pgx.Batch, opened map[string]*ledger.Books) {
	var ids, subjects []string
	var starts, of []time.Time
	var kinds []int16
	var bytes []int64
	for _, id := range sortedKeys(opened) {
		for _, l := range opened[id].Lines() {
			ids, subjects, kinds = append(ids, id), append(subjects, l.Subject), append(kinds, int16(l.Kind))
			starts, of, bytes = append(starts, l.Start), append(of, l.Of), append(bytes, l.Bytes)
		}
	}
	if len(ids) == 0 {
		return
	}
	batch.Queue(`INSERT INTO period_lines AS p (organization, period_start, kind, subject, of_period, bytes)
		SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::smallint[], $4::text[], $5::timestamptz[], $6::bigint[])
		ON CONFLICT (organization, period_start, kind, subject, of_period) DO UPDATE SET bytes = p.bytes + excluded.bytes`,
		ids, starts, kinds, subjects, of, bytes)
}

// linesSince reads the lines of an organization's periods that began at
// an instant or later.
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
