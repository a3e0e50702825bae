package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

const selectPositions = `SELECT partition, next FROM bus_positions WHERE group_name = $1 AND topic = $2`

// Positions returns the next offsets of weir.logs.v1 to apply, as the
// transaction sees them.
func Positions(ctx context.Context, tx pgx.Tx) (contract.Positions, error) {
	rows, _ := tx.Query(ctx, selectPositions, contract.GroupLedger, contract.TopicLogs)
	return collectPositions(rows)
}

// BookedPositions returns those in the topic of an id, without stopped
// partitions.
func BookedPositions(ctx context.Context, tx pgx.Tx, topic [16]byte) (contract.Positions, error) {
	rows, err := tx.Query(ctx, `SELECT partition, next FROM bus_positions WHERE group_name = $1 AND topic = $2 AND topic_id = $3 AND halted IS NULL`,
		contract.GroupLedger, contract.TopicLogs, topic)
	if err != nil {
		return nil, err
	}
	return collectPositions(rows)
}

const selectVerified = `SELECT partition, next FROM checked_ranges`

// selectAccepted reads when the last booked entry of each partition was accepted.
const selectAccepted = `SELECT p.partition, r.effective_to FROM bus_positions p
	CROSS JOIN LATERAL (SELECT effective_to FROM ranges WHERE partition = p.partition ORDER BY first_offset DESC LIMIT 1) r
	WHERE p.group_name = $1 AND p.topic = $2`

func collectAccepted(rows pgx.Rows) (map[int]time.Time, error) {
	accepted := map[int]time.Time{}
	var partition int
	var at time.Time
	_, err := pgx.ForEachRow(rows, []any{&partition, &at}, func() error {
		accepted[partition] = at.UTC()
		return nil
	})
	return accepted, err
}

// PositionsAt returns the positions at an instant.
func PositionsAt(ctx context.Context, tx pgx.Tx, at time.Time) (contract.Positions, error) {
	rows, _ := tx.Query(ctx, `SELECT p.partition, r.next_offset FROM (SELECT DISTINCT partition FROM bus_positions
			WHERE group_name = $1 AND topic = $2) p
		CROSS JOIN LATERAL (SELECT next_offset FROM ranges WHERE partition = p.partition AND booked_at <= $3
			ORDER BY booked_at DESC LIMIT 1) r`, contract.GroupLedger, contract.TopicLogs, at)
	return collectPositions(rows)
}

// AwaitApplied waits for all transactions that are applying records.
// Each holds its positions to its end and draws its booking time after
// moving them. So no later booking has a time before the call. Each row
// is unlocked before the next is locked, as its holder may wait for another.
func AwaitApplied(ctx context.Context, pool *pgxpool.Pool) error {
	rows, _ := pool.Query(ctx, `SELECT group_name, topic, partition FROM bus_positions ORDER BY 1, 2, 3`)
	positions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[positionKey])
	for _, key := range positions {
		if err == nil {
			err = key.await(ctx, pool)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot wait for running transactions: %w", err)
	}
	return nil
}

type positionKey struct {
	Group, Topic string
	Partition    int
}

// await returns once no transaction holds the position that held it at the call.
func (p positionKey) await(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT FROM bus_positions WHERE group_name = $1 AND topic = $2 AND partition = $3 FOR SHARE`, p.Group, p.Topic, p.Partition)
		return err
	})
}

func collectPositions(rows pgx.Rows) (contract.Positions, error) {
	found := contract.Positions{}
	var partition int
	var next int64
	_, err := pgx.ForEachRow(rows, []any{&partition, &next}, func() error {
		found[partition] = next
		return nil
	})
	return found, err
}

// batchAge exceeds the time between a batch's acceptance and its id.
const batchAge = 5 * time.Second

// IsCharged reports whether an organization was charged for a batch, a
// UUIDv7. It is false for a batch so late that it counts in a later period.
func IsCharged(ctx context.Context, tx pgx.Tx, organization pg.Organization, batch uuid.UUID) (charged bool, err error) {
	named := time.Unix(batch.Time().UnixTime())
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM transfers WHERE `+ofOrganization+` AND effective_at BETWEEN $2 AND $3
		AND source = $4 AND starts_with(event, $5))`,
		customPlan, organization, named.Add(-batchAge), named.Add(batchAge), ledger.FromLogs, batch.String()+"/").Scan(&charged)
	if err != nil {
		return false, fmt.Errorf("cannot look for the batch %s: %w", batch, err)
	}
	return charged, nil
}

// SaveLost covers offsets that are lost and were never applied: an
// empty range, as old as the one before it, so that ranges stay
// contiguous and no hour changes. Without a range before there is
// nothing to continue.
func SaveLost(ctx context.Context, tx pgx.Tx, partition int, to int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO ranges (`+rangeColumns+`)
		SELECT partition, next_offset, $2, 0, 0, 0, 0, effective_to, effective_to, clock_timestamp(), clock_timestamp(), 0
		  FROM (SELECT * FROM ranges WHERE partition = $1 ORDER BY first_offset DESC LIMIT 1) r WHERE next_offset < $2`, partition, to)
	return err
}
