package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// ceiling is the table for the comparison with COPY: the least that the
// ledger stores of a record, with its unique key.
const ceiling = `CREATE TABLE ledger.ceiling (
	organization text NOT NULL, effective_at timestamptz NOT NULL, source smallint NOT NULL, partition int NOT NULL, "offset" bigint NOT NULL,
	line smallint NOT NULL, period_start timestamptz NOT NULL, from_account smallint NOT NULL, to_account smallint NOT NULL, amount bigint NOT NULL,
	entries int NOT NULL, reason smallint NOT NULL, project text NOT NULL, key text NOT NULL, event text NOT NULL, booked_at timestamptz NOT NULL,
	PRIMARY KEY (organization, effective_at, source, partition, "offset", line))`

// perCopy is how many rows share a transaction, as many as in the ledger's.
const perCopy = 20_000

// measureCopy copies rows by two connections, as many as a replica
// has active consumers.
func measureCopy(ctx context.Context, w *world, r *Result) error {
	for _, statement := range []string{"CREATE SCHEMA ledger", ceiling} {
		if _, err := w.pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	const connections = 2
	began := time.Now()
	errs := make([]error, connections)
	var wait sync.WaitGroup
	for c := range connections {
		wait.Go(func() { errs[c] = w.copyRows(ctx, c, w.config.Events/connections) })
	}
	wait.Wait()
	r.Copy = rate(float64(w.config.Events) / time.Since(began).Seconds())
	return firstError(errs)
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) copyRows(ctx context.Context, partition, rows int) error {
	columns := []string{"organization", "effective_at", "source", "partition", "offset", "line", "period_start", "from_account", "to_account", "amount",
		"entries", "reason", "project", "key", "event", "booked_at"}
	now := time.Now()
	for first := 0; first < rows; first += perCopy {
		n := min(perCopy, rows-first)
		row := func(i int) ([]any, error) {
			offset := first + i
			id := organization(offset % organizations)
			return []any{id, now, int16(0), int32(partition), int64(offset), int16(0), now, int16(1), int16(2), int64(20_000), //nolint:gosec // small
				int32(100), int16(2), "prj_" + id, "key_" + id, fmt.Sprintf("0193d4c1-7c2a-7000-8000-%012d/1", offset), now}, nil
		}
		if _, err := w.pool.CopyFrom(ctx, pgx.Identifier{"ledger", "ceiling"}, columns, pgx.CopyFromSlice(n, row)); err != nil {
			return err
		}
	}
	return nil
}
