package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// word writes n without digits.
func word(n int) string {
	text := ""
	for n++; n > 0; n /= 26 {
		text += string(rune('a' + n%26))
	}
	return text
}

// accepted is an occurrence of a type, accepted that long after noon.
func accepted(typ string, after time.Duration) grouping.Occurrence {
	o := seen(typ, after)
	o.Accepted = noon.Add(after)
	return o
}

// kinds are the counts of a list by type; the overflow's is "".
func kinds(groups []postgres.Group) map[string]int64 {
	counts := map[string]int64{}
	for _, g := range groups {
		counts[g.Type] += g.Count
	}
	return counts
}

func expectKinds(t *testing.T, pool *pgxpool.Pool, want map[string]int64) {
	t.Helper()
	if got := kinds(list(t, pool, "acme", postgres.GroupQuery{Project: "shop"})); !maps.Equal(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
}

// New errors over a project's budget are counted in its
// overflow. Those of known groups still join them, the next
// hour has its own budget, and another project is unaffected.
func TestNewGroupsAreBounded(t *testing.T) {
	pool := open(t)
	other := accepted("A", 0)
	other.Project = "site"
	apply := func(occurrences ...grouping.Occurrence) {
		t.Helper()
		if err := applyWithin(t.Context(), pool, 2, occurrences...); err != nil {
			t.Fatal(err)
		}
	}
	apply(accepted("A", 0), accepted("B", 1), accepted("A", 2), accepted("C", 3), accepted("D", 4), accepted("B", 5))
	expectKinds(t, pool, map[string]int64{"A": 2, "B": 2, "": 2})
	apply(accepted("C", 6), other, accepted("A", 7), accepted("E", 59*time.Minute))
	expectKinds(t, pool, map[string]int64{"A": 3, "B": 2, "": 4})
	apply(accepted("D", 8), accepted("C", time.Hour), accepted("C", 9), accepted("C", 61*time.Minute), accepted("D", 62*time.Minute), accepted("E", 63*time.Minute))
	expectKinds(t, pool, map[string]int64{"A": 3, "B": 2, "": 6, "C": 3, "D": 1})
	if got := list(t, pool, "acme", postgres.GroupQuery{Project: "site"}); len(got) != 1 || got[0].Type != "A" {
		t.Errorf("another project has %+v", got)
	}
}

// All projects of an organization share a budget: what is new
// beyond it is counted in the overflow of its own project,
// which names that budget. Another organization has its own.
func TestNewGroupsOfAllProjectsAreBounded(t *testing.T) {
	pool := open(t)
	of := func(project, typ string, after time.Duration) grouping.Occurrence {
		o := accepted(typ, after)
		o.Project = project
		return o
	}
	foreign := of("shop", "A", 9)
	foreign.Organization = "other"
	for _, all := range [][]grouping.Occurrence{
		{of("shop", "A", 0), of("shop", "B", 1), of("shop", "C", 2), of("site", "A", 3), of("site", "B", 4)},
		{of("blog", "A", 5), of("shop", "A", 6), of("site", "A", 7), of("blog", "B", 8), foreign, of("blog", "A", time.Hour)},
	} {
		if _, err := create(t.Context(), pool, grouping.Budgets{Project: 2, Organization: 3}, all...); err != nil {
			t.Fatal(err)
		}
	}
	for project, want := range map[string]map[string]int64{"shop": {"A": 2, "B": 1, "": 1}, "site": {"A": 2, "": 1}, "blog": {"A": 1, "": 2}} {
		groups := list(t, pool, "acme", postgres.GroupQuery{Project: project})
		if got := kinds(groups); !maps.Equal(got, want) {
			t.Errorf("groups of %s: %v, want %v", project, got, want)
		}
		title := map[string]string{"shop": "More errors than 2 new groups an hour"}[project]
		if title == "" {
			title = "More errors than 3 new groups an hour in all projects"
		}
		for _, g := range groups {
			if g.Type == "" && g.Title != title {
				t.Errorf("the overflow of %s is %q, want %q", project, g.Title, title)
			}
		}
	}
	if got := list(t, pool, "other", postgres.GroupQuery{}); len(got) != 1 || got[0].Type != "A" {
		t.Errorf("another organization has %+v", got)
	}
}

// The overflow is a group like others: it has a description,
// times, levels, environments and samples, and is created once.
func TestOverflow(t *testing.T) {
	pool := open(t)
	var all []grouping.Occurrence
	for i := range 50 {
		all = append(all, accepted(word(i)+"Error", time.Duration(i)*time.Second))
	}
	all[30].Severity, all[30].Environment = grouping.SeverityFatal, "dev"
	created := 0
	for _, part := range [][]grouping.Occurrence{all[:20], all[20:]} {
		n, err := create(t.Context(), pool, grouping.Budgets{Project: 10, Organization: 100}, part...)
		if err != nil {
			t.Fatal(err)
		}
		created += n
	}
	if created != 11 {
		t.Errorf("%d groups are created, want 11", created)
	}
	found := list(t, pool, "acme", postgres.GroupQuery{Words: []string{"more", "errors"}})
	if len(found) != 1 {
		t.Fatalf("groups %+v", found)
	}
	g := found[0]
	if g.Title != "More errors than 10 new groups an hour" || g.Type != "" || g.Culprit != "" || g.Count != 40 || !g.FirstSeen.Equal(noon.Add(10*time.Second)) ||
		!g.LastSeen.Equal(noon.Add(49*time.Second)) || g.Severities != grouping.SeverityError|grouping.SeverityFatal || strings.Join(g.Environments, " ") != "dev prod" || !grouping.IsGroupID(g.ID) {
		t.Errorf("overflow %+v", g)
	}
	why := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (postgres.Explanation, error) {
		_, why, err := postgres.FindGroup(ctx, tx, "acme", g.ID)
		return why, err
	})
	if why.Scope != grouping.ScopeBudget || !strings.Contains(why.Rule, "10 new groups") {
		t.Errorf("why %+v", why)
	}
	samples := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) ([]postgres.Occurrence, error) {
		return postgres.Occurrences(ctx, tx, "acme", g.ID)
	})
	if n := len(samples); n == 0 || n > 20 || !samples[0].At.Equal(noon.Add(49*time.Second)) || !samples[n-1].At.Equal(noon.Add(10*time.Second)) {
		t.Errorf("%d samples", n)
	}
}

// system queries a number as the system.
func system(t testing.TB, pool *pgxpool.Pool, query string, args ...any) (n int64) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), query, args...).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Random floods in random batches: nothing is lost or
// counted twice, no budget is exceeded, and the same
// records in other batches create the same groups.
func TestFloodsAreCountedExactly(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 7))
		budgets := grouping.Budgets{Project: 1 + random.IntN(6), Organization: 1 + random.IntN(10)}
		var all []grouping.Occurrence
		for i := range 300 {
			o := accepted(word(random.IntN(40))+"Error", time.Duration(i)*time.Minute+time.Duration(random.IntN(20))*time.Minute)
			o.Project = []string{"shop", "site"}[random.IntN(2)]
			o.Error.StackTrace = append(o.Error.StackTrace, calledBy(word(random.IntN(3)))...)
			all = append(all, o)
		}
		var outcomes []map[string]int64
		for range 2 {
			pool := open(t)
			for rest := all; len(rest) > 0; {
				n := min(len(rest), 1+random.IntN(60))
				if _, err := create(t.Context(), pool, budgets, rest[:n]...); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			outcome := map[string]int64{}
			for _, g := range list(t, pool, "acme", postgres.GroupQuery{}) {
				outcome[g.ID] = g.Count
			}
			outcomes = append(outcomes, outcome)
			expectBudgetsKept(t, pool, len(all), budgets)
		}
		if !maps.Equal(outcomes[0], outcomes[1]) {
			t.Errorf("seed %d: groups depend on how records are spread over transactions: %v, %v", seed, outcomes[0], outcomes[1])
		}
	}
}

// expectBudgetsKept checks that groups hold every
// error once, and that budgets count the groups.
func expectBudgetsKept(t *testing.T, pool *pgxpool.Pool, errors int, budgets grouping.Budgets) {
	t.Helper()
	if n := system(t, pool, `SELECT sum(count) FROM error_groups`); n != int64(errors) {
		t.Errorf("groups count %d errors of %d", n, errors)
	}
	for whose, budget := range map[string]int{"<> ''": budgets.Project, "= ''": budgets.Organization} {
		if n := system(t, pool, `SELECT coalesce(max(founded), 0) FROM group_budgets WHERE project `+whose); n > int64(budget) {
			t.Errorf("%d new groups in an hour with a budget of %d", n, budget)
		}
	}
	groups := system(t, pool, `SELECT count(*) FROM error_groups WHERE why->>'level' <> 'budget'`)
	for _, whose := range []string{"<> ''", "= ''"} {
		if charged := system(t, pool, `SELECT sum(founded) FROM group_budgets WHERE project `+whose); charged != groups {
			t.Errorf("%d groups, but %d are charged to budgets", groups, charged)
		}
	}
}

// Concurrent floods of the same projects, each in its own order,
// keep the budgets exactly, lose nothing and don't deadlock.
func TestConcurrentFloods(t *testing.T) {
	pool := open(t)
	const workers, rounds = 4, 8
	budgets := grouping.Budgets{Project: 7, Organization: 10}
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for range rounds {
				var all []grouping.Occurrence
				for range 30 {
					o := accepted(word(random.IntN(60))+"Error", time.Duration(random.IntN(3))*time.Hour)
					o.Project = []string{"shop", "site"}[random.IntN(2)]
					all = append(all, o)
				}
				if _, err := create(context.Background(), pool, budgets, all...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	expectBudgetsKept(t, pool, workers*rounds*30, budgets)
	if n := system(t, pool, `SELECT count(*) FROM group_budgets WHERE project = '' AND founded < $1`, budgets.Organization); n != 0 {
		t.Errorf("%d budgets have room left", n)
	}
}

// A flood that used up its budget holds no lock that another
// project, or a group of its own project, waits for.
func TestAFloodLocksNobody(t *testing.T) {
	pool := open(t)
	if err := applyWithin(t.Context(), pool, 1, accepted("Known", 0), accepted("Flood", 1)); err != nil {
		t.Fatal(err)
	}
	other := accepted("New", 3)
	other.Project = "site"
	tally := grouping.NewTally()
	tally.Add(accepted("Flooded", 2))
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		if _, err := (postgres.Writer{NewGroups: grouping.Budgets{Project: 1, Organization: 10}}).Apply(t.Context(), tx, tally.Counts()); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // only a lock would make it wait for this transaction
		defer cancel()
		return applyWithin(ctx, pool, 1, other, accepted("Known", 4))
	})
	if err != nil {
		t.Fatal(err)
	}
	expectKinds(t, pool, map[string]int64{"Known": 2, "": 2})
}

// Old budgets are deleted once a later one of the project is charged.
func TestOldBudgetsAreForgotten(t *testing.T) {
	pool := open(t)
	for day := range 10 {
		mustApply(t, pool, accepted(fmt.Sprint("E", word(day)), time.Duration(day)*24*time.Hour))
	}
	if n := system(t, pool, `SELECT count(*) FROM group_budgets`); n != 2*3 { // of the project, and of all
		t.Errorf("%d budgets are kept", n)
	}
}
