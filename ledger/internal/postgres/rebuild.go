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

// Where a ledger is made anew, beside the one that there is, and where it is once
// it has been found to be the same.
const (
	RebuildingSchema = "ledger_rebuilding"
	RebuiltSchema    = "ledger_rebuilt"
)

// A Progress is how far a ledger is that is made anew.
type Progress struct {
	Logs     contract.Positions // of weir.logs.v1
	Topic    [16]byte           // the id of that; zero where nothing was booked
	Tenants  int64              // of weir.tenants.v1
	Decision int64              // place of the last decision in the order of all
	Sealed   []time.Time        // the hours whose seals are kept
	Facts    []string           // ids of those that are not published
}

// Names are those of what publishes facts, and of the group and the topic by
// which a ledger follows tenants.
type Names struct{ Relay, Group, Topic string }

// ProgressOf reads a ledger's as the transaction sees it.
func ProgressOf(ctx context.Context, tx pgx.Tx, names Names) (p Progress, err error) {
	if p.Logs, err = Positions(ctx, tx); err != nil {
		return p, err
	}
	err = tx.QueryRow(ctx, `SELECT coalesce((SELECT topic_id FROM bus_positions WHERE group_name = $1 AND topic = $2 AND topic_id IS NOT NULL LIMIT 1),
			'00000000-0000-0000-0000-000000000000'),
		coalesce((SELECT max(next) FROM bus_positions WHERE group_name = $3 AND topic = $4), 0), coalesce((SELECT max(position) FROM events), 0)`,
		contract.GroupLedger, contract.TopicLogs, names.Group, names.Topic).Scan(&p.Topic, &p.Tenants, &p.Decision)
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
	rows, err = tx.Query(ctx, `SELECT id FROM facts WHERE position > coalesce((SELECT position FROM bus_relays WHERE name = $1), 0)`, names.Relay)
	if err != nil {
		return p, err
	}
	p.Facts, err = pgx.CollectRows(rows, pgx.RowTo[string])
	return p, err
}

// Kept by nothing but the ledger itself: what was decided, what was answered to
// requests that decided, and what is parked.
var copiedToRebuilt = []string{
	copying("events", `organization, stream, version, position, name, data, metadata, private`) + ` WHERE position <= $1`,
	`SELECT setval('` + RebuildingSchema + `.events_position_seq', greatest($1::bigint, 1))`,
	copying("answers", `organization, key, input, answer, answered_at`) + ` WHERE $1::bigint >= 0`,
	copying("bus_parked", `organization, group_name, topic, partition, record_offset, record_time, key, value, header_names, header_values,
		reason, parked_at, attempts, failed_at, replay_asked_at`) + ` WHERE $1::bigint >= 0`,
}

func copying(table, columns string) string {
	return `INSERT INTO ` + RebuildingSchema + `.` + table + ` (` + columns + `) SELECT ` + columns + ` FROM ` + Schema + `.` + table
}

// CopyKept copies what can't be made again, decisions through a place in the
// order of all.
func CopyKept(ctx context.Context, tx pgx.Tx, through int64) error {
	for _, statement := range copiedToRebuilt {
		if _, err := tx.Exec(ctx, statement, through); err != nil {
			return fmt.Errorf("cannot copy what only the ledger keeps: %w", err)
		}
	}
	return nil
}

// InAsyncTx is pg.InTxAsSystem for a transaction that commits asynchronously: it
// may be lost if the server ends, until a later one has committed synchronously.
func InAsyncTx(ctx context.Context, pool *pgxpool.Pool, do func(tx pgx.Tx) error) error {
	return pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL synchronous_commit = off`); err != nil {
			return err
		}
		return do(tx)
	})
}

// RepeatCuts cuts hours of the log where the ledger cut them: the end of one in
// which a partition was silent is known from nothing else.
func RepeatCuts(ctx context.Context, tx pgx.Tx, through time.Time) error {
	_, err := tx.Exec(ctx, copying("cuts", `partition, hour, next_offset`)+` WHERE hour <= $1
		ON CONFLICT (partition, hour) DO UPDATE SET next_offset = excluded.next_offset`, through)
	return err
}

// SealCut writes the links of an hour that was cut.
func SealCut(ctx context.Context, tx pgx.Tx, hour time.Time) error {
	if _, err := tx.Exec(ctx, `INSERT INTO seals (hour) VALUES ($1)`, hour); err != nil {
		return err
	}
	return SealHour(ctx, tx, hour)
}

// SetProgress has a ledger that was made anew go on where another stands.
func SetProgress(ctx context.Context, tx pgx.Tx, names Names, p Progress, tenants [16]byte) error {
	for partition, next := range p.Logs {
		if err := setPosition(ctx, tx, contract.GroupLedger, contract.TopicLogs, partition, next, p.Topic); err != nil {
			return err
		}
	}
	if err := setPosition(ctx, tx, names.Group, names.Topic, 0, p.Tenants, tenants); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM facts WHERE id <> ALL ($1)`, p.Facts) // the others are published
	return err
}

func setPosition(ctx context.Context, tx pgx.Tx, group, topic string, partition int, next int64, id [16]byte) error {
	_, err := tx.Exec(ctx, `INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner, topic_id) VALUES ($1, $2, $3, $4, 0, '', $5)`,
		group, topic, partition, next, id)
	return err
}
