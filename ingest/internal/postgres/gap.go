package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// gapPieces is the most sums of a partition's stretches, which the ledger counts off one by one.
const gapPieces = 32

// GapBounds are those of the tables of stretches.
func GapBounds() []prune.Bound {
	const keeps, by = "what the ledger has not counted", "ingest/internal/gap"
	return []prune.Bound{{Table: "gap_stretches", Keeps: keeps, By: by}, {Table: "gap_charges", Keeps: keeps, By: by}}
}

// LockGap has tx sum stretches alone until it ends, or reports that another one does.
func LockGap(ctx context.Context, tx pgx.Tx) (locked bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return false, err
	}
	err = tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('weir gap ' || current_schema(), 0))`).Scan(&locked)
	return locked, err
}

// Summed are the stretches of a topic that are summed.
func Summed(ctx context.Context, tx pgx.Tx, topic [16]byte) (map[ingest.Stretch]bool, error) {
	rows, err := tx.Query(ctx, `SELECT partition, stretch FROM gap_stretches WHERE topic = $1`, topic)
	if err != nil {
		return nil, err
	}
	summed := map[ingest.Stretch]bool{}
	var s ingest.Stretch
	_, err = pgx.ForEachRow(rows, []any{&s.Partition, &s.Number}, func() error {
		summed[s] = true
		return nil
	})
	return summed, err
}

// SaveStretch notes what a stretch comes to.
func SaveStretch(ctx context.Context, tx pgx.Tx, topic [16]byte, s ingest.Stretch, charges []ingest.Charge) error {
	organizations, days, bytes := make([]string, len(charges)), make([]time.Time, len(charges)), make([]int64, len(charges))
	for i, c := range charges {
		organizations[i], days[i], bytes[i] = c.Organization, c.At.UTC(), c.Bytes
	}
	var batch pgx.Batch
	batch.Queue(`INSERT INTO gap_stretches (topic, partition, stretch) VALUES ($1, $2, $3)`, topic, s.Partition, s.Number)
	batch.Queue(`INSERT INTO gap_charges (organization, topic, partition, stretch, day, bytes)
		SELECT organization, $1, $2, $3, day, sum(bytes) FROM unnest($4::text[], $5::date[], $6::bigint[]) AS t (organization, day, bytes)
		GROUP BY organization, day`,
		topic, s.Partition, s.Number, organizations, days, bytes)
	return tx.SendBatch(ctx, &batch).Close()
}

// ForgetStretches removes what the ledger has counted, and what another topic held.
func ForgetStretches(ctx context.Context, tx pgx.Tx, topic [16]byte, counted ingest.Positions) error {
	var batch pgx.Batch
	for _, table := range []string{"gap_stretches", "gap_charges"} {
		batch.Queue(`DELETE FROM `+table+` WHERE topic <> $1`, topic)
		for partition, next := range counted {
			batch.Queue(`DELETE FROM `+table+` WHERE topic = $1 AND partition = $2 AND stretch < $3`, topic, partition, next/ingest.StretchOffsets)
		}
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// A StretchRun are stretches of one partition, from one to before another.
type StretchRun struct{ From, To ingest.Stretch }

// summing has sums added up in memory: of a day there are millions of rows, which the planner would sort on disk.
const summing = `SET LOCAL work_mem = '256MB'; SET LOCAL enable_sort = off`

const sumQuery = `SELECT organization, partition, day, sum(bytes)::bigint, max(stretch)
	FROM gap_charges JOIN unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[]) AS run (partition, first, after, each) USING (partition)
	WHERE topic = $1 AND stretch >= first AND stretch < after GROUP BY organization, partition, day, (stretch - first) / each`

// SumStretches returns what runs of stretches come to, by organization, partition and day of acceptance, in pieces that end where a stretch does.
func SumStretches(ctx context.Context, tx pgx.Tx, topic [16]byte, runs []StretchRun) ([]ingest.Charge, error) {
	var partitions []int
	var from, to, each []int64
	for _, r := range runs {
		partitions, from, to = append(partitions, r.From.Partition), append(from, r.From.Number), append(to, r.To.Number)
		each = append(each, max(1, (r.To.Number-r.From.Number+gapPieces-1)/gapPieces))
	}
	if _, err := tx.Exec(ctx, summing); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, sumQuery, topic, partitions, from, to, each)
	if err != nil {
		return nil, err
	}
	var charges []ingest.Charge
	var c ingest.Charge
	var last ingest.Stretch
	_, err = pgx.ForEachRow(rows, []any{&c.Organization, &c.Partition, &c.At, &c.Bytes, &last.Number}, func() error {
		c.Offset = last.To() - 1
		charges = append(charges, c)
		return nil
	})
	return charges, err
}
