package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
)

// An overview counts the unresolved groups of a project, those of a day, and the
// errors of all groups by hour, also of those that are merged.
func TestOverview(t *testing.T) {
	pool := open(t)
	other := seen("OtherError", 47*time.Hour)
	other.Project = "lair"
	mustApply(t, pool, seen("OldError", 0), seen("OldError", 30*time.Hour), seen("NewError", 40*time.Hour), seen("DoneError", 41*time.Hour),
		seen("MergedError", 40*time.Hour), other)
	now := noon.Add(48 * time.Hour)
	ids := map[string]string{}
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{Project: "shop"}) {
		ids[g.Type] = g.ID
	}
	mustDecide(t, pool, 48*time.Hour, grouping.Command{Status: grouping.Resolved}, ids["DoneError"])
	merge(t, pool, 48*time.Hour, ids["NewError"], ids["MergedError"])
	got := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (postgres.Overview, error) {
		return postgres.FindOverview(ctx, tx, "acme", "shop", now)
	})
	if got.Unresolved != 2 || got.New != 1 || got.Hours.Sum() != 4 {
		t.Errorf("%+v", got)
	}
	if hour := int(noon.Add(40*time.Hour).Sub(got.From) / time.Hour); got.Hours[hour] != 2 {
		t.Errorf("in hour %d: %v", hour, got.Hours)
	}
}
