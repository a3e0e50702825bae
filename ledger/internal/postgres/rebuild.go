package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// Schemas of a ledger while it is rebuilt, and once it has been found equal.
const (
	RebuildingSchema = "ledger_rebuilding"
	RebuiltSchema    = "ledger_rebuilt"
)

// A Progress is the state that a rebuild has to reach.
type Progress struct {
	Logs     contract.Positions // of weir.logs.v1
	Topic    [16]byte           // its id; zero: nothing was booked
	Decision int64              // position of the last decision
	Sealed   []time.Time        // hours whose seals are kept
	Facts    []string           // ids of unpublished facts
}

// ProgressOf reads a ledger's progress as the transaction sees it.
// relay publishes its facts.
func ProgressOf(ctx context.Context, tx pgx.Tx, relay string) (p Progress, err error) {
	if p.Logs, err = Positions(ctx, tx); err != nil {
		return p, err
	}
	err = tx.QueryRow(ctx, `SELECT coalesce((SELECT topic_id FROM bus_positions WHERE group_name = $1 AND topic = $2 AND topic_id IS NOT NULL LIMIT 1),
			'00000000-0000-0000-0000-000000000000'),
		coalesce((SELECT max(position) FROM events), 0)`, contract.GroupLedger, contract.TopicLogs).Scan(&p.Topic, &p.Decision)
	if err != nil {
		return p, err
	}
	rows, err := tx.Query(ctx, `SELECT hour FROM seals WHERE root IS NOT NULL ORDER BY hour`)
	if err != nil {
		return p, err
	}
	if p.Sealed, err = pgx.CollectRows(rows, pgx.RowTo[time.Time]); err != nil {
		return p, err
	}
	rows, err = tx.Query(ctx, `SELECT id FROM facts WHERE position > coalesce((SELECT position FROM bus_relays WHERE name = $1), 0)`, relay)
	if err != nil {
		return p, err
	}
	p.Facts, err = pgx.CollectRows(rows, pgx.RowTo[string])
	return p, err
}

func copying(table, columns string) string {
	return `INSERT INTO ` + RebuildingSchema + `.` + table + ` (` + columns + `) SELECT ` + columns + ` FROM ` + Schema + `.` + table
}

// CopyKept copies what can't be rebuilt: decisions through a position,
// answers to deciding requests, deletions with how far a group follows
// tenants, checkpoints, rules, and parked records.
func CopyKept(ctx context.Context, tx pgx.Tx, through int64, tenants string) error {
	for _, kept := range []struct {
		statement string
		args      []any
	}{
		{copying("events", `organization, stream, version, position, name, data, metadata, private`) + ` WHERE position <= $1`, []any{through}},
		{`SELECT setval('` + RebuildingSchema + `.events_position_seq', greatest($1::bigint, 1))`, []any{through}},
		{copying("bus_positions", `group_name, topic, partition, next, epoch, owner, topic_id`) + ` WHERE group_name = $1`, []any{tenants}},
		{copying("erasures", `organization, project, begun_at, gone_by, step, place, found, removed, erased_at, published_at`), nil},
		{copying("checkpoints", `hour, topic_id, positions, decision, hash`), nil},
		{copying("checkpoint_rows", `organization, hour, kind, content, hash`), nil},
		{copying("terms", `version, rules, kept, hash`), nil},
		{copying("answers", `organization, key, input, answer, answered_at`), nil},
		{copying("bus_parked", `organization, group_name, topic, partition, record_offset, record_time, key, value, header_names, header_values,
			reason, parked_at, attempts, failed_at, replay_asked_at`), nil},
	} {
		if _, err := tx.Exec(ctx, kept.statement, kept.args...); err != nil {
			return fmt.Errorf("cannot copy what can't be rebuilt: %w", err)
		}
	}
	return nil
}

// InAsyncTx is pg.InTxAsSystem with an asynchronous commit. It may be
// lost in a crash of the server until a later synchronous commit.
func InAsyncTx(ctx context.Context, pool *pgxpool.Pool, do func(tx pgx.Tx) error) error {
	return pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL synchronous_commit = off`); err != nil {
			return err
		}
		return do(tx)
	})
}

// CopyCuts cuts hours where the ledger cut them. Nothing else knows the
// end of an hour in which a partition was silent.
func CopyCuts(ctx context.Context, tx pgx.Tx, through time.Time) error {
	_, err := tx.Exec(ctx, copying("cuts", `partition, hour, next_offset`)+` WHERE hour <= $1
		ON CONFLICT (partition, hour) DO UPDATE SET next_offset = excluded.next_offset`, through)
	return err
}

// SealCut writes the links of an hour that was cut. Its root has the
// refusals that the other has: those of long ago are gone.
func SealCut(ctx context.Context, tx pgx.Tx, hour time.Time) error {
	if _, err := tx.Exec(ctx, copying("seals", `hour, refused`)+` WHERE hour = $1`, hour); err != nil {
		return err
	}
	return SealHour(ctx, tx, hour)
}

// SetProgress has a rebuilt ledger continue where the other is.
func SetProgress(ctx context.Context, tx pgx.Tx, p Progress) error {
	for partition, next := range p.Logs {
		if err := setPosition(ctx, tx, contract.GroupLedger, contract.TopicLogs, partition, next, p.Topic); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `DELETE FROM facts WHERE id <> ALL ($1)`, p.Facts) // the others were published
	return err
}

func setPosition(ctx context.Context, tx pgx.Tx, group, topic string, partition int, next int64, id [16]byte) error {
	_, err := tx.Exec(ctx, `INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner, topic_id) VALUES ($1, $2, $3, $4, 0, '', $5)`,
		group, topic, partition, next, id)
	return err
}
