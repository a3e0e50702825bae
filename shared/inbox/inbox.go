package inbox

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations creates the tables of an inbox; every module that consumes weir.logs.v1 applies it to its schema.
func Migrations() pg.MigrationSet { return pg.MigrationSet{Name: "inbox", FS: migrations} }

// IdempotencyWindow is how long an Idempotency-Key stands for its first request.
const IdempotencyWindow = 24 * time.Hour

// A Verdict is what a record counts as. Only a Fresh one may have an effect.
type Verdict int

// The verdicts.
const (
	Fresh     Verdict = iota + 1 // seen for the first time
	Duplicate                    // the same part of the same batch was seen before
	Replayed                     // the same part of another batch with the same idempotency key and body counts
	Reused                       // another batch of the same idempotency key with another body counts
)

// Filter gives each record its verdict, in order, and remembers the fresh ones in tx. Call it at the start of the
// transaction that has the effect. The records of one idempotency key must come in the order of their partition.
func Filter(ctx context.Context, tx pgx.Tx, records []contract.LogsAccepted) ([]Verdict, error) {
	if len(records) == 0 {
		return nil, nil
	}
	candidates, err := claimAll(ctx, tx, records)
	if err != nil {
		return nil, fmt.Errorf("cannot judge idempotency: %w", err)
	}
	verdicts, err := judge(ctx, tx, candidates)
	if err != nil {
		return nil, fmt.Errorf("cannot judge parts: %w", err)
	}
	return verdicts, nil
}

// A candidate is what a record counts as: a part of its own batch, or, where its idempotency key belongs to another
// batch with the same body, that part of that batch. The same body is always cut into the same parts, so a request that
// was published in part and sent again is completed, not lost and not doubled.
type candidate struct {
	part
	day       time.Time // of the batch that it counts for
	otherwise Verdict   // the verdict where the part was seen before
	barred    bool      // another body under the same idempotency key: no effect in any case
}

type part struct {
	batch string
	part  int32
}

// judge gives each candidate its verdict.
func judge(ctx context.Context, tx pgx.Tx, candidates []candidate) ([]Verdict, error) {
	first := map[part]int{} // where a part stands first
	var days []time.Time
	var batches []string
	var parts []int32
	verdicts := make([]Verdict, len(candidates))
	for i, c := range candidates {
		verdicts[i] = c.otherwise
		if _, again := first[c.part]; c.barred || again {
			continue
		}
		first[c.part] = i
		days, batches, parts = append(days, c.day), append(batches, c.batch), append(parts, c.part.part)
	}
	err := remember(ctx, tx, days, batches, parts, func(seen part) { verdicts[first[seen]] = Fresh })
	return verdicts, err
}

// remember inserts the parts and calls fresh for each that was not there.
func remember(ctx context.Context, tx pgx.Tx, days []time.Time, batches []string, parts []int32, fresh func(part)) error {
	if len(days) == 0 {
		return nil
	}
	if err := pg.EnsureDays(ctx, tx, "inbox", days...); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `INSERT INTO inbox (day, batch, part)
		SELECT day, batch::uuid, part FROM unnest($1::date[], $2::text[], $3::int[]) AS t (day, batch, part)
		ON CONFLICT DO NOTHING RETURNING batch::text, part`, days, batches, parts)
	if err != nil {
		return err
	}
	var key part
	_, err = pgx.ForEachRow(rows, []any{&key.batch, &key.part}, func() error {
		fresh(key)
		return nil
	})
	return err
}
