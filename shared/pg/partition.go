package pg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// DayPartition is the name of table's partition for the UTC day
// of at: rows are copied straight into it.
func DayPartition(table string, at time.Time) string {
	return table + at.UTC().Format("_20060102")
}

// ValuePartition is the name of table's partition for a value of
// the key that it is partitioned by.
func ValuePartition(table string, value int) string { return table + "_" + strconv.Itoa(value) }

// EnsureValue creates a missing partition of table, which is
// partitioned by list of an integer, for a value. Its own
// partitions are days by column, for EnsureDays.
func EnsureValue(ctx context.Context, tx pgx.Tx, table string, value int, column string) error {
	partition := ValuePartition(table, value)
	missing, err := missingRelations(ctx, tx, []string{partition})
	if err != nil || len(missing) == 0 {
		return err
	}
	if missing, err = missingUnderLock(ctx, tx, table, partition); err == nil && len(missing) > 0 {
		err = attach(ctx, tx, table, partition, fmt.Sprintf(`IN (%d)`, value), ` PARTITION BY RANGE (`+pgx.Identifier{column}.Sanitize()+`)`)
	}
	if err != nil {
		return fmt.Errorf("cannot create partition %q: %w", partition, err)
	}
	return nil
}

// EnsureDays creates the missing partitions of table for the UTC days of
// times. Table is partitioned by range of a date or timestamptz. Readers
// and writers of table continue meanwhile.
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
	return attach(ctx, tx, table, partition, fmt.Sprintf(`FROM ('%s') TO ('%s')`, day.Format(time.RFC3339), day.Add(24*time.Hour).Format(time.RFC3339)), "")
}

// missingUnderLock takes the advisory lock and looks again.
// Without it two transactions could both create, and CREATE TABLE
// IF NOT EXISTS would fail for one of them.
func missingUnderLock(ctx context.Context, tx pgx.Tx, table, partition string) ([]string, error) {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('weir partition ' || current_schema() || $1, 0))`, table); err != nil {
		return nil, err
	}
	return missingRelations(ctx, tx, []string{partition})
}

// attach makes the partition as a table of its own and attaches it. CREATE
// TABLE … PARTITION OF would lock table until the commit, and everybody behind
// the longest reader. Row level security is not copied: requests never name a
// partition, and COPY needs one without it.
func attach(ctx context.Context, tx pgx.Tx, table, partition, bound, partitioned string) error {
	parent, child := pgx.Identifier{table}.Sanitize(), pgx.Identifier{partition}.Sanitize()
	if _, err := tx.Exec(ctx, fmt.Sprintf(`CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY)%s`, child, parent, partitioned)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, fmt.Sprintf(`ALTER TABLE %s ATTACH PARTITION %s FOR VALUES %s`, parent, child, bound))
	return err
}

// missingRelations reads the catalogue itself: to_regclass would
// answer from a cache, without what another transaction has created
// during the wait for the advisory lock.
func missingRelations(ctx context.Context, tx pgx.Tx, names []string) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT name FROM unnest($1::text[]) AS name
		WHERE NOT EXISTS (SELECT FROM pg_class WHERE relname = name AND relnamespace = current_schema()::regnamespace) ORDER BY 1`, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// NewestDay is the UTC day of table's newest day partition; zero
// where there is none.
func NewestDay(ctx context.Context, tx pgx.Tx, table string) (day time.Time, err error) {
	var name *string
	err = tx.QueryRow(ctx, `SELECT max(child.relname::text) FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
		WHERE inhparent = to_regclass($1)`, pgx.Identifier{table}.Sanitize()).Scan(&name)
	if err != nil || name == nil {
		return time.Time{}, err
	}
	return time.Parse("20060102", strings.TrimPrefix(*name, table+"_"))
}

// Days lists the UTC days that table has partitions of, the oldest first.
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

// DropDaysBefore drops table's partitions of days before the UTC
// day of at, and returns their names.
func DropDaysBefore(ctx context.Context, tx pgx.Tx, table string, at time.Time) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT child.relname
		FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
		WHERE inhparent = to_regclass($1) AND child.relname < $2 ORDER BY 1`,
		pgx.Identifier{table}.Sanitize(), DayPartition(table, at))
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, err := tx.Exec(ctx, `DROP TABLE `+pgx.Identifier{name}.Sanitize()); err != nil {
			return nil, fmt.Errorf("cannot drop partition %q: %w", name, err)
		}
	}
	return names, nil
}
