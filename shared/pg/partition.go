package pg

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/lifecycle"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Partitions returns the functions that create and drop partitions, for
// every schema with a partitioned table.
func Partitions() MigrationSet { return MigrationSet{Name: "partitions", FS: migrations} }

// DayPartition returns the name of table's partition for the UTC day of
// at: rows are copied directly into it.
func DayPartition(table string, at time.Time) string {
	return table + at.UTC().Format("_20060102")
}

// ValuePartition returns the name of table's partition for a value of its key.
func ValuePartition(table string, value int) string { return table + "_" + strconv.Itoa(value) }

// EnsureValue creates a missing partition of table, which is
// partitioned by list of an integer, for a value. It is itself
// partitioned into days by column, for EnsureDays.
func EnsureValue(ctx context.Context, tx pgx.Tx, table string, value int, column string) error {
	partition := ValuePartition(table, value)
	missing, err := missingRelations(ctx, tx, []string{partition})
	if err != nil || len(missing) == 0 {
		return err
	}
	if missing, err = missingUnderLock(ctx, tx, table, partition); err == nil && len(missing) > 0 {
		err = attach(ctx, tx, table, nil, &value, &column)
	}
	if err != nil {
		return fmt.Errorf("cannot create partition %q: %w", partition, err)
	}
	return nil
}

// EnsureDays creates table's missing partitions for the UTC days of
// times. Table is partitioned by range of a date or timestamptz.
// Readers and writers of table continue meanwhile.
func EnsureDays(ctx context.Context, tx pgx.Tx, table string, times ...time.Time) error {
	days := map[string]time.Time{}
	var last time.Time
	for _, at := range times {
		if day := at.UTC().Truncate(24 * time.Hour); !day.Equal(last) {
			days[DayPartition(table, day)], last = day, day
		}
	}
	missing, err := missingRelations(ctx, tx, slices.Sorted(maps.Keys(days)))
	if err != nil {
		return fmt.Errorf("cannot look up the partitions of %q: %w", table, err)
	}
	for _, partition := range missing {
		if err := ensureDay(ctx, tx, table, partition, days[partition]); err != nil {
			return fmt.Errorf("cannot create partition %q: %w", partition, err)
		}
	}
	return nil
}

func ensureDay(ctx context.Context, tx pgx.Tx, table, partition string, day time.Time) error {
	missing, err := missingUnderLock(ctx, tx, table, partition)
	if err != nil || len(missing) == 0 {
		return err
	}
	return attach(ctx, tx, table, &day, nil, nil)
}

// missingUnderLock takes the advisory lock and looks again. Without it
// two transactions could both create, and CREATE TABLE IF NOT EXISTS
// would fail for one of them.
func missingUnderLock(ctx context.Context, tx pgx.Tx, table, partition string) ([]string, error) {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('weir partition ' || current_schema() || $1, 0))`, table); err != nil {
		return nil, err
	}
	return missingRelations(ctx, tx, []string{partition})
}

// attach makes table's owner create the partition as a separate table
// and attach it. CREATE TABLE … PARTITION OF would lock table until the
// commit, and so everybody behind the longest reader. Row level
// security is not copied: requests never name a partition, and COPY
// needs one without it.
func attach(ctx context.Context, tx pgx.Tx, table string, day *time.Time, value *int, by *string) error {
	_, err := tx.Exec(ctx, `SELECT attach_partition($1::text::regclass, $2::date, $3::int, $4::text::name)`, pgx.Identifier{table}.Sanitize(), day, value, by)
	return err
}

// HoldDay blocks other writes to table's partition of a day until
// the transaction ends.
func HoldDay(ctx context.Context, tx pgx.Tx, table string, day time.Time) error {
	_, err := tx.Exec(ctx, `SELECT hold_day($1::text::regclass, $2::date)`, pgx.Identifier{table}.Sanitize(), day.UTC())
	if err != nil {
		return fmt.Errorf("cannot hold partition %q: %w", DayPartition(table, day), err)
	}
	return nil
}

// DropDay drops table's partition of a day.
func DropDay(ctx context.Context, tx pgx.Tx, table string, day time.Time) error {
	_, err := tx.Exec(ctx, `SELECT drop_day($1::text::regclass, $2::date)`, pgx.Identifier{table}.Sanitize(), day.UTC())
	if err != nil {
		return fmt.Errorf("cannot drop partition %q: %w", DayPartition(table, day), err)
	}
	return nil
}

// missingRelations reads the catalogue itself: to_regclass would answer
// from a cache, without what another transaction created during the
// wait for the advisory lock.
func missingRelations(ctx context.Context, tx pgx.Tx, names []string) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT name FROM unnest($1::text[]) AS name
		WHERE NOT EXISTS (SELECT FROM pg_class WHERE relname = name AND relnamespace = current_schema()::regnamespace) ORDER BY 1`, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// NewestDay returns the UTC day of table's newest day partition;
// zero without one.
func NewestDay(ctx context.Context, tx pgx.Tx, table string) (day time.Time, err error) {
	var name *string
	err = tx.QueryRow(ctx, `SELECT max(child.relname::text) FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
		WHERE inhparent = to_regclass($1)`, pgx.Identifier{table}.Sanitize()).Scan(&name)
	if err != nil || name == nil {
		return time.Time{}, err
	}
	return time.Parse("20060102", strings.TrimPrefix(*name, table+"_"))
}

// Days lists the UTC days of table's partitions, oldest first.
func Days(ctx context.Context, tx pgx.Tx, table string) ([]time.Time, error) {
	rows, err := tx.Query(ctx, `SELECT right(child.relname, 8) FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
		WHERE inhparent = to_regclass($1) ORDER BY 1`, pgx.Identifier{table}.Sanitize())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (day time.Time, err error) {
		var name string
		if err := row.Scan(&name); err != nil {
			return day, err
		}
		return time.Parse("20060102", name)
	})
}

// SummarizeDays makes the block range indexes of table's partitions of
// some days cover their newest rows.
func SummarizeDays(ctx context.Context, tx pgx.Tx, table string, from, to time.Time) error {
	_, err := tx.Exec(ctx, `SELECT summarize_days($1::text::regclass, $2::date, $3::date)`, pgx.Identifier{table}.Sanitize(), from.UTC(), to.UTC())
	return err
}

// DropDaysBefore drops table's partitions of days before the UTC day of
// at, and returns their names.
func DropDaysBefore(ctx context.Context, tx pgx.Tx, table string, at time.Time) (names []string, err error) {
	days, err := Days(ctx, tx, table)
	if err != nil {
		return nil, err
	}
	for _, day := range days {
		if !day.Before(at.UTC().Truncate(24 * time.Hour)) {
			break
		}
		if err := DropDay(ctx, tx, table, day); err != nil {
			return nil, err
		}
		names = append(names, DayPartition(table, day))
	}
	return names, nil
}

// A migration that waits for a table behind a long reader delays all
// later users of it: it gives up after this time, and retries.
const (
	waitForTables = `SET LOCAL lock_timeout = '2s'`
	lockAttempts  = 60
	lockPause     = 5 * time.Second
)

const lockNotAvailable = "55P03"

// withoutQueue is InTx for a transaction that sets waitForTables.
func withoutQueue(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := InTx(ctx, pool, fn)
		if code(err) != lockNotAvailable {
			return err
		}
		if attempt < lockAttempts {
			lifecycle.Pause(ctx, lockPause)
		}
		if attempt == lockAttempts || ctx.Err() != nil {
			return fmt.Errorf("%w: others hold a table that it changes (pg_stat_activity shows who, pg_locks what): "+
				"migrate again once a backup or rebuild of the module has ended", err)
		}
	}
}

// QueryInSavepoint runs a query in one exchange and releases its locks at once, not at
// the end of the transaction: a reader of many days of a partitioned table
// holds only one day's locks. It still sees the transaction's snapshot.
//
// The query is planned for its values: partitions that these exclude
// stay unlocked, where a generic plan locks all.
func QueryInSavepoint(ctx context.Context, tx pgx.Tx, text string, args []any, read func(rows pgx.Rows) error) error {
	batch := &pgx.Batch{}
	batch.Queue(`SAVEPOINT look`)
	batch.Queue(`SET LOCAL plan_cache_mode = force_custom_plan`)
	batch.Queue(text, args...).Query(read)
	batch.Queue(`ROLLBACK TO SAVEPOINT look`)
	batch.Queue(`RELEASE SAVEPOINT look`)
	return tx.SendBatch(ctx, batch).Close()
}
