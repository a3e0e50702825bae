package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
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
	rows, _ := tx.Query(ctx, `SELECT hour FROM seals WHERE root IS NOT NULL ORDER BY hour`)
	if p.Sealed, err = pgx.CollectRows(rows, pgx.RowTo[time.Time]); err != nil {
		return p, err
	}
	rows, _ = tx.Query(ctx, `SELECT id FROM facts WHERE position > coalesce((SELECT position FROM bus_relays WHERE name = $1), 0)`, relay)
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

// HasAllDecisions reports whether every decision about every
// organization is kept, as a rebuild from the beginning needs.
func HasAllDecisions(ctx context.Context, tx pgx.Tx) (all bool, err error) {
	err = tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM organizations o WHERE decisions <>
		(SELECT count(*) FROM events e WHERE e.organization = o.organization AND stream = $1))`, decisionStream).Scan(&all)
	return all, err
}

// history selects the past that a checkpoint does not have, as x: what
// was closed, ended or booked before it. Source 0 of a transfer is the
// log, any other a decision. $1 are partitions, $2 the next offset of each, $3 the hour.
var history = []struct{ table, from string }{
	{"books", `JOIN target.organizations o USING (organization) WHERE x.period_end <= o.closed_through`},
	{"period_lines", `JOIN target.organizations o USING (organization)
		JOIN source.books b USING (organization, period_start) WHERE b.period_end <= o.closed_through`},
	{"folded_transfers", `WHERE EXISTS (SELECT FROM target.books b WHERE b.organization = x.organization AND b.period_start = x.period_start)`},
	{"statements", `JOIN target.organizations o USING (organization) WHERE x.number <= o.statements`},
	{"transfers", `LEFT JOIN unnest($1::int[], $2::bigint[]) AS p (partition, next) USING (partition) LEFT JOIN target.organizations o USING (organization)
		WHERE CASE source WHEN 0 THEN x."offset" < p.next ELSE x."offset" <= o.decisions END`},
	{"ranges", `JOIN unnest($1::int[], $2::bigint[]) AS p (partition, next) USING (partition) WHERE x.next_offset <= p.next`},
	{"cuts", `WHERE hour < $3`},
	{"seals", `WHERE hour < $3`},
	{"links", `WHERE hour < $3`},
	{"replays", `WHERE hour < $3`},
	{"inbox", `JOIN target.inbox_held h USING (batch, part)`},
}

// LoadCheckpoint writes what books were at a verified checkpoint, and
// the history before it, to the schema of a rebuild.
func LoadCheckpoint(ctx context.Context, tx pgx.Tx, c ledger.Checkpoint) error {
	for _, kind := range inCheckpoint {
		columns, err := columnsOfTable(ctx, tx, kind.kind)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %[1]s.%[2]s (%[3]s) SELECT %[5]s FROM %[4]s.checkpoint_rows c
			CROSS JOIN LATERAL jsonb_populate_recordset(NULL::%[1]s.%[2]s, c.content) x WHERE c.hour = $1 AND c.kind = $2`,
			RebuildingSchema, kind.kind, unqualified(columns), Schema, qualified(columns)), c.Hour, kind.kind)
		if err != nil {
			return fmt.Errorf("cannot load the %s of the checkpoint: %w", kind.kind, err)
		}
	}
	if err := ensureHeldDays(ctx, tx); err != nil {
		return fmt.Errorf("cannot create the days of the inbox: %w", err)
	}
	var partitions []int32
	var nexts []int64
	for partition, next := range c.Positions {
		partitions, nexts = append(partitions, int32(partition)), append(nexts, next) //nolint:gosec // of a topic
	}
	for _, part := range history {
		if err := copyHistory(ctx, tx, part.table, part.from, partitions, nexts, c.Hour); err != nil {
			return fmt.Errorf("cannot copy %s: %w", part.table, err)
		}
	}
	return nil
}

// CopyOutcomes copies what came of requests that were not accepted, and
// the usage before a checkpoint, if it is not zero. group counts outcomes,
// and goes on where it is. Books and budgets have exhausted what the
// refusals say. tx is repeatable read.
func CopyOutcomes(ctx context.Context, tx pgx.Tx, c ledger.Checkpoint, group string) error {
	if err := copyUsage(ctx, tx, c); err != nil {
		return err
	}
	for _, table := range []string{"tallies", "refusals", "refusal_days"} {
		if err := copyHistory(ctx, tx, table, "", nil, nil, c.Hour); err != nil {
			return fmt.Errorf("cannot copy %s: %w", table, err)
		}
	}
	if _, err := tx.Exec(ctx, copying("bus_positions", `group_name, topic, partition, next, epoch, owner, topic_id`)+` WHERE group_name = $1`, group); err != nil {
		return err
	}
	for _, limit := range []string{
		`UPDATE books b SET refused = r.refused FROM (` + latches + `) r WHERE r.project = '' AND r.key = '' AND r.since = b.raises`,
		`UPDATE budgets b SET refused = least(r.refused, b.bytes) FROM (` + latches + `) r WHERE r.project = b.project AND r.key = b.key AND r.since = b.since`,
	} {
		if _, err := tx.Exec(ctx, limit+` AND r.organization = b.organization AND r.period_start = b.period_start`); err != nil {
			return fmt.Errorf("cannot exhaust what was refused: %w", err)
		}
	}
	return nil
}

// usageHistory selects the usage before that of a checkpoint, as x, and
// what was not accepted. $1 is the hour, $2 from when on hours are in it.
var usageHistory = []struct{ table, key, from string }{
	{"usage_hours", "organization, hour, project, key, environment, outcome, reason", `
		WHERE (outcome <> 'accepted' OR hour < $2) AND $1::timestamptz IS NOT NULL`},
	{"usage_days", "organization, day, project, key, environment, outcome, reason", `LEFT JOIN ` + Schema + `.checkpoint_rows c
		ON c.organization = x.organization AND c.hour = $1 AND c.kind = 'organizations' AND $2::timestamptz IS NOT NULL
		WHERE outcome <> 'accepted' OR day < ((c.content -> 0 ->> 'closed_through')::timestamptz AT TIME ZONE 'UTC')::date`},
}

// copyUsage copies the usage before a checkpoint over what entries that
// came late have made of it again, as nothing else can.
func copyUsage(ctx context.Context, tx pgx.Tx, c ledger.Checkpoint) error {
	for _, part := range usageHistory {
		columns, err := columnsOfTable(ctx, tx, part.table)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %[1]s.%[2]s (%[3]s) SELECT %[4]s FROM %[5]s.%[2]s x %[6]s ON CONFLICT (%[7]s) DO UPDATE
			SET requests = excluded.requests, entries = excluded.entries, bytes = excluded.bytes, errors = excluded.errors, key_in_body = excluded.key_in_body`,
			RebuildingSchema, part.table, unqualified(columns), qualified(columns), Schema, part.from, part.key), c.Hour, c.Hour.Add(-checkpointOverlap))
		if err != nil {
			return fmt.Errorf("cannot copy %s: %w", part.table, err)
		}
	}
	return nil
}

// ensureHeldDays creates the days of the inbox that have parts of
// requests of which others are missing.
func ensureHeldDays(ctx context.Context, tx pgx.Tx) error {
	rows, _ := tx.Query(ctx, `SELECT DISTINCT date_trunc('day', accepted_at, 'UTC') FROM inbox_held`)
	days, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return err
	}
	return pg.EnsureDays(ctx, tx, "inbox", days...)
}

// copyHistory copies rows of a table. Parameters that a statement does
// not name are typed by the first expression.
func copyHistory(ctx context.Context, tx pgx.Tx, table, from string, partitions []int32, nexts []int64, hour time.Time) error {
	columns, err := columnsOfTable(ctx, tx, table)
	if err != nil {
		return err
	}
	from = strings.NewReplacer("target.", RebuildingSchema+".", "source.", Schema+".").Replace(from)
	_, err = tx.Exec(ctx, fmt.Sprintf(`WITH typed AS (SELECT $1::int[], $2::bigint[], $3::timestamptz)
		INSERT INTO %s.%s (%s) SELECT %s FROM %s.%s x %s`,
		RebuildingSchema, table, unqualified(columns), qualified(columns), Schema, table, from), partitions, nexts, hour)
	return err
}

// columnsOfTable returns the columns of a table that is rebuilt.
func columnsOfTable(ctx context.Context, tx pgx.Tx, table string) ([]string, error) {
	rows, _ := tx.Query(ctx, `SELECT quote_ident(attname) FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`, RebuildingSchema+"."+table)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func unqualified(columns []string) string { return strings.Join(columns, ", ") }

func qualified(columns []string) string { return "x." + strings.Join(columns, ", x.") }

// TransferDays returns the days of which transfers are kept.
func TransferDays(ctx context.Context, tx pgx.Tx) ([]time.Time, error) {
	return pg.Days(ctx, tx, "transfers")
}

// PositionsBefore returns where the log stood some hours before a
// checkpoint, as far back as hours are kept.
func PositionsBefore(ctx context.Context, tx pgx.Tx, c ledger.Checkpoint, span time.Duration) (contract.Positions, error) {
	rows, _ := tx.Query(ctx, `SELECT DISTINCT ON (partition) partition, next_offset FROM cuts WHERE hour <= $1 ORDER BY partition, hour DESC`, c.Hour.Add(-span))
	return collectPositions(rows)
}
