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

// A reach is where in a partition an organization has blocks of one
// kind, and the bounds of their event times.
type reach struct {
	day      day
	wide     bool // blocks of more than an hour, or others
	from, to int64
}

// sooner is the order of the columns.
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

// An ownedReach is a reach of an organization.
type ownedReach struct {
	organization string
	reach        reach
}

// saveReaches stores where blocks are, for searches.
func saveReaches(ctx context.Context, tx pgx.Tx, blocks map[day][]*Block) error {
	var organizations []string
	var retentions []int16
	var days []time.Time
	var wide []bool
	var from, to []int64
	for _, r := range reachesOf(blocks) {
		organizations, days, wide = append(organizations, r.organization), append(days, r.reach.day.begins), append(wide, r.reach.wide)
		retentions = append(retentions, int16(r.reach.day.retention)) //nolint:gosec // bounded by the contract
		from, to = append(from, r.reach.from), append(to, r.reach.to)
	}
	_, err := tx.Exec(ctx, `INSERT INTO block_days SELECT * FROM unnest($1::text[], $2::smallint[], $3::date[], $4::boolean[], $5::bigint[], $6::bigint[])
		ON CONFLICT DO NOTHING`, organizations, retentions, days, wide, from, to)
	if err != nil {
		return fmt.Errorf("cannot save where blocks lie: %w", err)
	}
	return nil
}

// reachesOf are the reaches of blocks, each once, in the
// order of the columns: transactions lock rows in one order.
func reachesOf(blocks map[day][]*Block) []ownedReach {
	seen := map[ownedReach]bool{}
	for d, list := range blocks {
		for _, b := range list {
			seen[ownedReach{b.Organization, reachOf(d, &b.Header)}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b ownedReach) int {
		return cmp.Or(cmp.Compare(a.organization, b.organization), a.reach.sooner(b.reach))
	})
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
