package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// Each order has every group that matches once, on pages of any size, also where many are equal.
func TestSorts(t *testing.T) {
	pool := open(t)
	var all []grouping.Occurrence
	for i := range 23 {
		for n := range 1 + i%5 {
			o := seen(word(i)+"Error", time.Duration(100+i*7%23)*time.Second+time.Duration(n)*time.Hour)
			o.User = fmt.Sprint(n % (1 + i%3))
			all = append(all, o)
		}
	}
	mustApply(t, pool, all...)
	mustDecide(t, pool, aDay, grouping.Command{Status: grouping.Resolved}, list(t, pool, "acme", postgres.GroupQuery{})[3].ID)
	users := func(g postgres.Group) int64 {
		recent := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (map[string]*postgres.Recent, error) {
			return postgres.FindRecent(ctx, tx, "acme", []string{g.ID}, noon.Add(aDay))
		})
		return recent[g.ID].Users
	}
	for by, key := range map[postgres.Sorting]func(g postgres.Group) int64{
		postgres.ByFirstSeen: func(g postgres.Group) int64 { return g.FirstSeen.UnixMicro() }, postgres.ByCount: func(g postgres.Group) int64 { return g.Count }, postgres.ByUsers: users,
	} {
		for _, limit := range []int{1, 5, 22, 100} {
			q := postgres.GroupQuery{Project: "shop", Status: grouping.Unresolved, Sort: by, Now: noon.Add(aDay), Limit: limit}
			var keys []int64
			ids := map[string]bool{}
			for {
				page := search(t, pool, "acme", q)
				for _, g := range page.Groups {
					keys, ids[g.ID] = append(keys, key(g)), true
				}
				if page.Next == nil {
					break
				}
				q.After = *page.Next
			}
			if slices.Reverse(keys); len(keys) != 22 || len(ids) != 22 || !slices.IsSorted(keys) || keys[0] == keys[21] {
				t.Errorf("by %s, %d at once: %d of %d: %v", by, limit, len(ids), len(keys), keys)
			}
		}
	}
}

// BenchmarkLists measures pages of 50 of a hundred thousand groups, in each
// order and with each filter; those of the last week have users each day.
//
//	bin/backends -- go test -run - -bench Lists -benchtime 40x ./grouping/internal/postgres
func BenchmarkLists(b *testing.B) {
	pool := open(b)
	furnish(b, pool, 100_000)
	for _, by := range []postgres.Sorting{"", postgres.ByFirstSeen, postgres.ByCount, postgres.ByUsers} {
		for name, q := range map[string]postgres.GroupQuery{
			"all": {}, "unresolved": {Status: grouping.Unresolved}, "archived": {Status: grouping.Archived}, "level": {Severities: grouping.SeverityFatal},
			"environment": {Environments: []string{"moon"}}, "word": {Words: []string{"needle"}}, "words": {Words: []string{"error", "of", "kind", "9"}},
			"assignee": {Assignee: "nobody"}, "unassigned": {Unassigned: true, Status: grouping.Resolved}, "type": {Type: "Error42"}, "release": {Release: "9.9"}, "to": {To: noon.Add(-300 * aDay)}, "new": {NewSince: true},
		} {
			b.Run(fmt.Sprintf("by=%s/%s", by, name), func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					q.Project, q.Sort, q.Now, q.Limit = "shop", by, noon, 50
					began := time.Now()
					page := search(b, pool, "acme", q)
					read(b, pool, "acme", func(ctx context.Context, tx pgx.Tx) (any, error) {
						return postgres.FindRecent(ctx, tx, "acme", page.IDs(), noon)
					})
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				for name, at := range map[string]int{"least-ms": 0, "p50-ms": len(took) / 2, "p95-ms": len(took) * 95 / 100} { // others use the machine, too
					b.ReportMetric(float64(took[at].Microseconds())/1000, name)
				}
			})
		}
	}
}

// furnish makes groups and their days by SQL.
func furnish(t testing.TB, pool *pgxpool.Pool, groups int) {
	t.Helper()
	mustApply(t, pool, withUsers(seen("AlphaError", 0), 40)...)
	asSystem(t, pool, func(tx pgx.Tx) error {
		for _, statement := range []string{
			`INSERT INTO error_groups (organization, id, project, title, type, culprit, count, first_seen, last_seen, seen_minute, arrived, levels, environments,
				samples, similar_hash, why, expires, status, decided, releases)
			 SELECT organization, 'grp_' || md5(n::text), project, 'Error of kind ' || n || ': ' || repeat('it broke ', 8), 'Error' || n % 977, 'com.acme.shop.Cart' || n % 377 || '.total',
				n * 7919 % 10007, last_seen - n * interval '5 minutes', last_seen - n * interval '1 minute', seen_minute - n * interval '1 minute', arrived, levels, environments,
				1, '\x01', why, expires, (ARRAY['unresolved', 'resolved', 'ignored', 'archived'])[1 + n % 4], jsonb_build_object('status', 'unresolved'),
				array(SELECT '2026.11.' || n % 97 + r FROM generate_series(1, 10) AS r)
			   FROM error_groups, generate_series(1, ` + fmt.Sprint(groups) + `) AS n`,
			`INSERT INTO group_days (organization, error_group, day, counted, users) SELECT g.organization, g.id, d.day - n, counted, users
			   FROM group_days d, error_groups g, generate_series(0, 6) AS n WHERE g.id <> d.error_group AND g.last_seen > d.day - 7 ON CONFLICT DO NOTHING`,
		} {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	})
	if _, err := pgtest.Owner(t, pool).Exec(t.Context(), `VACUUM ANALYZE error_groups, group_days`); err != nil {
		t.Fatal(err)
	}
}

func withUsers(o grouping.Occurrence, users int) (all []grouping.Occurrence) {
	for i := range users {
		o.User = fmt.Sprint(i)
		all = append(all, o)
	}
	return all
}
