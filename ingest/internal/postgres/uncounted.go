package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// UncountedBounds returns the bounds of the tables of sums.
func UncountedBounds() []prune.Bound {
	const by = "ingest/internal/uncounted"
	return []prune.Bound{
		{Table: "gap_runs", Keeps: "what the ledger has not counted, 64 runs of each partition", By: by},
		{Table: "gap_charges", Keeps: "a million rows, or two runs of each partition", By: by},
	}
}

// LockUncounted makes tx the only one that sums stretches until it ends;
// false: another one does.
func LockUncounted(ctx context.Context, tx pgx.Tx) (locked bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return false, err
	}
	err = tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('weir uncounted ' || current_schema(), 0))`).Scan(&locked)
	return locked, err
}

// UncountedRuns returns the summed runs of a topic by partition, in order.
func UncountedRuns(ctx context.Context, tx pgx.Tx, topic [16]byte) (map[int][]ingest.StretchRun, error) {
	rows, err := tx.Query(ctx, `SELECT partition, first, after FROM gap_runs WHERE topic = $1 ORDER BY partition, first`, topic)
	if err != nil {
		return nil, err
	}
	runs := map[int][]ingest.StretchRun{}
	var r ingest.StretchRun
	_, err = pgx.ForEachRow(rows, []any{&r.Partition, &r.First, &r.After}, func() error {
		runs[r.Partition] = append(runs[r.Partition], r)
		return nil
	})
	return runs, err
}

// CountCharges returns the number of a topic's rows.
func CountCharges(ctx context.Context, tx pgx.Tx, topic [16]byte) (rows int64, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM gap_charges WHERE topic = $1`, topic).Scan(&rows)
	return rows, err
}

// SaveRun stores the sums of a run.
func SaveRun(ctx context.Context, tx pgx.Tx, topic [16]byte, r ingest.StretchRun, charges []ingest.Charge) (rows int64, err error) {
	organizations, days, bytes := make([]string, len(charges)), make([]time.Time, len(charges)), make([]int64, len(charges))
	for i, c := range charges {
		organizations[i], days[i], bytes[i] = c.Organization, c.At.UTC(), c.Bytes
	}
	if _, err := tx.Exec(ctx, `INSERT INTO gap_runs (topic, partition, first, after) VALUES ($1, $2, $3, $4)`, topic, r.Partition, r.First, r.After); err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, `INSERT INTO gap_charges (organization, topic, partition, first, day, bytes)
		SELECT organization, $1, $2, $3, day, sum(bytes) FROM unnest($4::text[], $5::date[], $6::bigint[]) AS t (organization, day, bytes)
		GROUP BY organization, day`,
		topic, r.Partition, r.First, organizations, days, bytes)
	return tag.RowsAffected(), err
}

const foldQuery = `WITH gone AS (DELETE FROM gap_charges WHERE topic = $1 AND partition = $2 AND first IN ($3, $4) RETURNING organization, day, bytes),
	kept AS (INSERT INTO gap_charges (organization, topic, partition, first, day, bytes)
		SELECT organization, $1, $2, $3, day, sum(bytes) FROM gone GROUP BY organization, day RETURNING 1)
	SELECT (SELECT count(*) FROM gone) - (SELECT count(*) FROM kept)`

// FoldRuns joins two adjacent runs and returns by how many rows they shrink.
func FoldRuns(ctx context.Context, tx pgx.Tx, topic [16]byte, a, b ingest.StretchRun) (fewer int64, err error) {
	var batch pgx.Batch
	batch.Queue(`DELETE FROM gap_runs WHERE topic = $1 AND partition = $2 AND first = $3`, topic, b.Partition, b.First)
	batch.Queue(`UPDATE gap_runs SET after = $4 WHERE topic = $1 AND partition = $2 AND first = $3`, topic, a.Partition, a.First, b.After)
	batch.Queue(foldQuery, topic, a.Partition, a.First, b.First).QueryRow(func(row pgx.Row) error { return row.Scan(&fewer) })
	err = tx.SendBatch(ctx, &batch).Close()
	return fewer, err
}

// ForgetRuns deletes counted runs and those of another topic.
func ForgetRuns(ctx context.Context, tx pgx.Tx, topic [16]byte, counted ingest.Positions) error {
	partitions, below := make([]int, 0, len(counted)), make([]int64, 0, len(counted))
	for partition, next := range counted {
		partitions, below = append(partitions, partition), append(below, next/ingest.StretchOffsets)
	}
	_, err := tx.Exec(ctx, `WITH gone AS (DELETE FROM gap_runs r WHERE topic <> $1
			OR EXISTS (SELECT FROM unnest($2::int[], $3::bigint[]) AS counted (partition, below) WHERE counted.partition = r.partition AND after <= below)
			RETURNING topic, partition, first)
		DELETE FROM gap_charges USING gone
		WHERE gap_charges.topic = gone.topic AND gap_charges.partition = gone.partition AND gap_charges.first = gone.first`, topic, partitions, below)
	return err
}

// UncountedCharges returns the sums of runs by organization and day of
// acceptance, each as if it were the last record of its run.
func UncountedCharges(ctx context.Context, tx pgx.Tx, topic [16]byte, runs []ingest.StretchRun) ([]ingest.Charge, error) {
	partitions, first, after := make([]int, len(runs)), make([]int64, len(runs)), make([]int64, len(runs))
	for i, r := range runs {
		partitions[i], first[i], after[i] = r.Partition, r.First, r.After
	}
	rows, err := tx.Query(ctx, `SELECT organization, partition, after, day, bytes FROM gap_charges
		JOIN unnest($2::int[], $3::bigint[], $4::bigint[]) AS run (partition, first, after) USING (partition, first) WHERE topic = $1`,
		topic, partitions, first, after)
	if err != nil {
		return nil, err
	}
	var charges []ingest.Charge
	var c ingest.Charge
	var run ingest.StretchRun
	names := map[string]string{} // one copy of each, instead of one for each row
	_, err = pgx.ForEachRow(rows, []any{&c.Organization, &c.Partition, &run.After, &c.At, &c.Bytes}, func() error {
		if _, known := names[c.Organization]; !known {
			names[c.Organization] = c.Organization
		}
		c.Organization, c.Offset = names[c.Organization], run.To()-1
		charges = append(charges, c)
		return nil
	})
	return charges, err
}
