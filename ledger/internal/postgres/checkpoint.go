package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

// checkpointEvery is the time between checkpoints, by the log.
const checkpointEvery = 24 * time.Hour

// checkpointOverlap is how long before its hour a checkpoint has usage
// by the hour.
const checkpointOverlap = 2 * time.Hour

// inCheckpoint selects what a checkpoint has of each table, as x: what
// is open, with the usage of its days. $1 is from when on hours of usage
// are.
var inCheckpoint = []struct{ kind, from string }{
	{"organizations", `organizations x`},
	{"books", `books x JOIN organizations o USING (organization) WHERE o.closed_through IS NULL OR x.period_end > o.closed_through`},
	{"grants", `grants x`},
	{"budgets", `budgets x`},
	{"period_lines", `period_lines x JOIN books b USING (organization, period_start) JOIN organizations o USING (organization)
		WHERE o.closed_through IS NULL OR b.period_end > o.closed_through`},
	{"chains", `chains x`},
	{"inbox_held", `inbox_held x`},
	{"usage_hours", `usage_hours x WHERE outcome = 'accepted' AND hour >= $1`},
	{"usage_days", `usage_days x JOIN organizations o USING (organization) WHERE outcome = 'accepted'
		AND (o.closed_through IS NULL OR day >= (o.closed_through AT TIME ZONE 'UTC')::date)`},
}

// TakeCheckpoint takes the checkpoint of an hour that is cut and not
// linked, where one is due. tx is repeatable read: all of it is of one
// instant. Another replica that links the hour waits for tx.
func TakeCheckpoint(ctx context.Context, tx pgx.Tx) (taken bool, err error) {
	hour, found, err := UnsealedHour(ctx, tx)
	if err != nil || !found {
		return false, err
	}
	c := ledger.Checkpoint{Hour: hour}
	if c.Positions, err = Positions(ctx, tx); err != nil || len(c.Positions) == 0 {
		return false, err
	}
	var due bool
	err = tx.QueryRow(ctx, `SELECT topic_id, coalesce((SELECT max(position) FROM events), 0),
			NOT EXISTS (SELECT FROM checkpoints c WHERE c.hour > $3 AND c.topic_id = p.topic_id)
		FROM (SELECT min(topic_id::text)::uuid AS topic_id FROM bus_positions WHERE group_name = $1 AND topic = $2 HAVING count(DISTINCT topic_id) = 1) p`,
		contract.GroupLedger, contract.TopicLogs, hour.Add(-checkpointEvery)).Scan(&c.Topic, &c.Decision, &due)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !due {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO checkpoints (hour, topic_id, positions, decision, hash) VALUES ($1, $2, $3, $4, '')`,
		hour, c.Topic, c.Positions, c.Decision); err != nil {
		return false, err
	}
	for _, kind := range inCheckpoint {
		if err := takeRows(ctx, tx, hour, kind.kind, kind.from); err != nil {
			return false, fmt.Errorf("cannot take the %s of a checkpoint: %w", kind.kind, err)
		}
	}
	if c.Hash, err = hashOfRows(ctx, tx, c); err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `UPDATE checkpoints SET hash = $2 WHERE hour = $1`, hour, c.Hash[:])
	return err == nil, err
}

func takeRows(ctx context.Context, tx pgx.Tx, hour time.Time, kind, from string) error {
	_, err := tx.Exec(ctx, `WITH content AS (SELECT x.organization, jsonb_agg(to_jsonb(x.*) ORDER BY to_jsonb(x.*)::text COLLATE "C") AS rows
			FROM (SELECT $1::timestamptz) AS since, `+from+` GROUP BY x.organization)
		INSERT INTO checkpoint_rows (organization, hour, kind, content, hash)
		SELECT organization, $2, $3, rows, sha256(convert_to(rows::text, 'UTF8')) FROM content`, hour.Add(-checkpointOverlap), hour, kind)
	return err
}

// hashOfRows hashes a checkpoint by the hashes of its rows.
func hashOfRows(ctx context.Context, tx pgx.Tx, c ledger.Checkpoint) (ledger.Hash, error) {
	rows, _ := tx.Query(ctx, `SELECT organization, kind, hash FROM checkpoint_rows WHERE hour = $1 ORDER BY organization COLLATE "C", kind COLLATE "C"`, c.Hour)
	digest := ledger.NewCheckpointDigest(c)
	var organization, kind string
	var hash []byte
	_, err := pgx.ForEachRow(rows, []any{&organization, &kind, &hash}, func() error {
		digest.Add(organization, kind, hash)
		return nil
	})
	return digest.Sum(), err
}

// Checkpoints returns those kept, the oldest first.
func Checkpoints(ctx context.Context, tx pgx.Tx) (found []ledger.Checkpoint, err error) {
	rows, _ := tx.Query(ctx, `SELECT hour, topic_id, positions, decision, hash FROM checkpoints ORDER BY hour`)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c ledger.Checkpoint, err error) {
		var hash []byte
		err = row.Scan(&c.Hour, &c.Topic, &c.Positions, &c.Decision, &hash)
		c.Hour, c.Hash = c.Hour.UTC(), hashOf(hash)
		return c, err
	})
}

// LastCheckpoint returns the hour of the last; zero: there is none.
func LastCheckpoint(ctx context.Context, tx pgx.Tx) (hour time.Time, err error) {
	var last *time.Time
	err = tx.QueryRow(ctx, `SELECT max(hour) FROM checkpoints`).Scan(&last)
	return timeOf(last), err
}

// CheckCheckpoint compares a checkpoint with its rows, and its hash with
// that in the root of its hour.
func CheckCheckpoint(ctx context.Context, tx pgx.Tx, c ledger.Checkpoint) ([]ledger.Violation, error) {
	var changed int
	var sealed []byte
	err := tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM checkpoint_rows r WHERE hour = $1 AND CASE WHEN content IS NULL
			THEN NOT EXISTS (SELECT FROM erasures e WHERE e.organization = r.organization AND e.project = '')
			ELSE hash <> sha256(convert_to(content::text, 'UTF8')) END),
		(SELECT checkpoint FROM seals WHERE hour = $1 AND root IS NOT NULL)`, c.Hour).Scan(&changed, &sealed)
	if err != nil {
		return nil, err
	}
	hash, err := hashOfRows(ctx, tx, c)
	if err != nil {
		return nil, err
	}
	if changed > 0 || hash != c.Hash || hashOf(sealed) != c.Hash {
		return []ledger.Violation{{Invariant: ledger.CheckpointIsSealed, Detail: fmt.Sprintf(
			"hour %s: %d rows have changed, the hash of all is %x, of the checkpoint %x, and in the root %x",
			c.Hour.Format(time.RFC3339), changed, hash, c.Hash, sealed)}}, nil
	}
	return verifyRootOf(ctx, tx, c.Hour)
}

// verifyCheckpoints compares all.
func verifyCheckpoints(ctx context.Context, tx pgx.Tx) (violations []ledger.Violation, err error) {
	all, err := Checkpoints(ctx, tx)
	for _, c := range all {
		found, err := CheckCheckpoint(ctx, tx, c)
		if err != nil {
			return nil, err
		}
		violations = append(violations, found...)
	}
	return violations, err
}
