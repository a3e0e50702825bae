package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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
