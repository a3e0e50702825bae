package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest/internal/objects"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// maxAhead is how far the clock may be ahead of the newest block: a
// fast clock must not drop blocks.
const maxAhead = 24 * time.Hour

// lockTimeout is how long a partition's removal waits for its readers, with
// others waiting behind it. The next run tries again.
const lockTimeout = `SET LOCAL lock_timeout = '500ms'`

// Tables are those of the log store and its objects, for a prune.Pruner.
func Tables(store objects.Store, clock func() time.Time) []prune.Table {
	return []prune.Table{&blocks{clock: clock}, blockDays{clock}, objectTable{store, clock}, deletedObjects{store, clock}, prune.Rows{
		Table: "merged_blocks", Bound: "an hour, for pages under way", Age: "merged_at", Before: prune.Ago(time.Hour, clock), AppendOnly: true,
	}}
}

// MergeBounds are those of the other tables of merges.
func MergeBounds() []prune.Bound {
	return []prune.Bound{
		{Table: "small_blocks", Keeps: "projects' days with blocks that may be merged", By: "ingest/internal/postgres"},
		{Table: "merge_counts", Keeps: "a number for each organization", By: "its primary key"},
	}
}

// daysPerRun is how many days of a retention a run drops, so that a
// wrong clock does limited damage. Runs are ten minutes apart, so it keeps up.
const daysPerRun = 2

// blocks go by the partition.
type blocks struct {
	clock   func() time.Time
	dropped map[int]int // days of each retention, in this run
}

func (*blocks) Name() string { return "blocks" }

func (*blocks) Keeps() string { return "the retention that the entries were accepted with" }

// Prune drops one partition, so that it holds the locks of one.
func (b *blocks) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	days, err := loadDays(ctx, tx)
	today := trustedDay(b.clock(), days)
	for _, d := range days {
		if d.past(today) && b.dropped[d.retention] < daysPerRun {
			return 1, true, b.drop(ctx, tx, d)
		}
	}
	b.dropped = nil
	return 0, false, err
}

// Oldest is the beginning of the oldest day.
func (*blocks) Oldest(ctx context.Context, tx pgx.Tx) (oldest time.Time, err error) {
	days, err := loadDays(ctx, tx)
	for _, d := range days {
		if oldest.IsZero() || d.begins.Before(oldest) {
			oldest = d.begins
		}
	}
	return oldest, err
}

func (b *blocks) drop(ctx context.Context, tx pgx.Tx, d day) error {
	if b.dropped == nil {
		b.dropped = map[int]int{}
	}
	b.dropped[d.retention]++
	if _, err := tx.Exec(ctx, lockTimeout); err != nil {
		return err
	}
	return pg.DropDay(ctx, tx, d.class(), d.begins)
}

// blockDays are the days whose blocks may be past their retention.
type blockDays struct{ clock func() time.Time }

func (blockDays) Name() string { return "block_days" }

func (blockDays) Keeps() string {
	return "as long as the blocks, a few rows for each organization and day"
}

func (b blockDays) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	days, err := loadDays(ctx, tx)
	if err != nil {
		return 0, false, err
	}
	retentions, begins := make([]int16, len(days)), make([]time.Time, len(days))
	for i, d := range days {
		retentions[i], begins[i] = int16(d.retention), d.begins //nolint:gosec // bounded by the contract
	}
	tag, err := tx.Exec(ctx, `DELETE FROM block_days WHERE day + retention < $1::date
		AND (retention, day) NOT IN (SELECT * FROM unnest($2::smallint[], $3::date[]))`,
		trustedDay(b.clock(), days), retentions, begins)
	return tag.RowsAffected(), false, err
}

func (blockDays) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	return oldest(ctx, tx, `SELECT min(day)::timestamp AT TIME ZONE 'UTC' FROM block_days`)
}

// trustedDay returns the present day by a clock that may be ahead of all blocks.
func trustedDay(now time.Time, days []day) time.Time {
	newest := time.Time{}
	for _, d := range days {
		if d.begins.After(newest) {
			newest = d.begins
		}
	}
	if limit := newest.Add(maxAhead); now.After(limit) {
		now = limit
	}
	return dayOf(0, now).begins
}

// loadDays returns all partitions that hold blocks.
func loadDays(ctx context.Context, tx pgx.Tx) ([]day, error) {
	rows, err := tx.Query(ctx, `SELECT child.relname::text FROM pg_inherits class JOIN pg_inherits part ON part.inhparent = class.inhrelid
		JOIN pg_class child ON child.oid = part.inhrelid WHERE class.inhparent = 'blocks'::regclass ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d day, err error) {
		var name string
		if err := row.Scan(&name); err != nil {
			return d, err
		}
		return parseDay(name)
	})
}

// parseDay reads a partition's name back: blocks_90_20261121.
func parseDay(name string) (day, error) {
	class, date, _ := strings.Cut(strings.TrimPrefix(name, "blocks_"), "_")
	retention, err := strconv.Atoi(class)
	if err != nil {
		return day{}, fmt.Errorf("cannot read the name of partition %q: %w", name, err)
	}
	begins, err := time.Parse("20060102", date)
	if err != nil {
		return day{}, fmt.Errorf("cannot read the name of partition %q: %w", name, err)
	}
	return dayOf(retention, begins), nil
}

// Erasable are the tables with what tenants have sent, in the
// order in which they are erased, and their objects.
func Erasable(store objects.Store) []erasure.Table {
	return []erasure.Table{
		erasure.Partitions("blocks", erasure.OfProject), erasableObjects(store),
		erasure.Rows("block_days", erasure.OfOrganization), erasure.Rows("small_blocks", erasure.OfProject), erasure.Rows("merged_blocks", erasure.OfProject),
		erasure.Rows("merge_counts", erasure.OfOrganization), erasure.Rows("inbox_held", erasure.OfProject), erasure.Parked(),
		erasure.Rows("alert_history", ofSearches), erasure.Rows("alerts", ofSearches), erasure.Rows("saved_searches", erasure.OfProject),
		erasure.Rows("ingest_rules", erasure.OfProject),
		erasure.Rows("rejected_counts", erasure.OfProject), erasure.Rows("rejected_samples", erasure.OfProject),
		erasure.Rows("facts", `organization = $1 AND ($2 = '' OR body->>'project' = $2)`),
	}
}

// ofSearches is the condition for what belongs to saved searches.
const ofSearches = `organization = $1 AND ($2 = '' OR search IN (SELECT id FROM saved_searches WHERE organization = $1 AND project = $2))`

// A day is a partition of blocks: those received on one day with one retention.
type day struct {
	retention int // in days
	begins    time.Time
}

func dayOf(retention int, at time.Time) day {
	return day{retention: retention, begins: at.UTC().Truncate(24 * time.Hour)}
}

func (d day) ends() time.Time { return d.begins.AddDate(0, 0, 1) }

// past reports whether the whole day is past its retention.
func (d day) past(today time.Time) bool { return d.begins.AddDate(0, 0, d.retention).Before(today) }

// class is the partition of all days with that retention.
func (d day) class() string { return pg.ValuePartition("blocks", d.retention) }

func (d day) partition() string { return pg.DayPartition(d.class(), d.begins) }

// ensureDays creates the partitions that are missing.
func ensureDays(ctx context.Context, tx pgx.Tx, blocks map[day][]*Block) error {
	classes := map[int][]time.Time{}
	for d := range blocks {
		classes[d.retention] = append(classes[d.retention], d.begins)
	}
	for _, retention := range slices.Sorted(maps.Keys(classes)) { // all replicas lock partitions in one order
		days := classes[retention]
		if err := pg.EnsureValue(ctx, tx, "blocks", retention, "received_at"); err != nil {
			return err
		}
		if err := pg.EnsureDays(ctx, tx, pg.ValuePartition("blocks", retention), days...); err != nil {
			return err
		}
	}
	return nil
}
