package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
)

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

// A reach is where in a partition an organization has blocks of one
// kind, and the bounds of their event times.
type reach struct {
	day      day
	wide     bool // blocks of more than an hour, or others
	from, to int64
}

// sooner is the order of the columns, so that transactions lock rows in one order.
func (r reach) sooner(other reach) int {
	wide := func(r reach) int {
		if r.wide {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(r.day.retention, other.day.retention), r.day.begins.Compare(other.day.begins), cmp.Compare(wide(r), wide(other)),
		cmp.Compare(r.from, other.from), cmp.Compare(r.to, other.to))
}

// reachOf has bounds that are rounded, so that few of them differ.
func reachOf(d day, block *ingest.Header) reach {
	from, to := ingest.Rounded(block.Min, block.Max, d.begins)
	return reach{day: d, wide: block.Max.Seconds-block.Min.Seconds > narrow, from: from, to: to}
}

// saveReaches stores where blocks are, for searches.
func saveReaches(ctx context.Context, tx pgx.Tx, blocks map[day][]*Block) error {
	type row struct {
		organization string
		reach        reach
	}
	noted := map[row]bool{}
	for d, list := range blocks {
		for _, b := range list {
			noted[row{b.Organization, reachOf(d, &b.Header)}] = true
		}
	}
	rows := make([]row, 0, len(noted))
	for r := range noted {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.organization, b.organization), a.reach.sooner(b.reach))
	})
	columns := struct {
		organizations []string
		retentions    []int16
		days          []time.Time
		wide          []bool
		from, to      []int64
	}{}
	for _, r := range rows {
		columns.organizations = append(columns.organizations, r.organization)
		columns.retentions = append(columns.retentions, int16(r.reach.day.retention)) //nolint:gosec // bounded by the contract
		columns.days, columns.wide = append(columns.days, r.reach.day.begins), append(columns.wide, r.reach.wide)
		columns.from, columns.to = append(columns.from, r.reach.from), append(columns.to, r.reach.to)
	}
	_, err := tx.Exec(ctx, `INSERT INTO block_days SELECT * FROM unnest($1::text[], $2::smallint[], $3::date[], $4::boolean[], $5::bigint[], $6::bigint[])
		ON CONFLICT DO NOTHING`, columns.organizations, columns.retentions, columns.days, columns.wide, columns.from, columns.to)
	if err != nil {
		return fmt.Errorf("cannot save where blocks lie: %w", err)
	}
	return nil
}

func loadReaches(ctx context.Context, tx pgx.Tx, organization pg.Organization) ([]reach, error) {
	rows, err := tx.Query(ctx, `SELECT retention, day::timestamp AT TIME ZONE 'UTC', wide, min(from_seconds), max(to_seconds)
		FROM block_days WHERE organization = $1 GROUP BY retention, day, wide`, organization)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r reach, err error) {
		var retention int
		var begins time.Time
		err = row.Scan(&retention, &begins, &r.wide, &r.from, &r.to)
		r.day = dayOf(retention, begins)
		return r, err
	})
}
