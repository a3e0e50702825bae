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

// Of very many groups an overview adds up those seen last, and says so.
func TestOverviewOfManyGroups(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("OldError", 0))
	for _, c := range []struct {
		groups  int
		atLeast bool
		errors  int64
	}{{postgres.MostSummed - 1, false, 1}, {1, true, 0}} {
		asSystem(t, pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO error_groups (organization, id, project, title, type, culprit, count, first_seen, last_seen, seen_minute, arrived, levels,
				environments, samples, similar_hash, why, expires)
				SELECT organization, md5($1 || n::text), project, title, type, culprit, count, first_seen, last_seen, seen_minute + interval '1 minute', arrived, levels,
					environments, samples, similar_hash, why, expires FROM error_groups, generate_series(1, $1::int) AS n WHERE type = 'OldError' AND id LIKE 'grp_%'`, c.groups)
			return err
		})
		got := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (postgres.Overview, error) {
			return postgres.FindOverview(ctx, tx, "acme", "shop", noon.Add(time.Hour))
		})
		if got.AtLeast != c.atLeast || got.Hours.Sum() != c.errors {
			t.Errorf("%d more groups: at least %t, %d errors", c.groups, got.AtLeast, got.Hours.Sum())
		}
	}
}
