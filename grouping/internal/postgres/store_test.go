package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// A group's count is exact, its times are those of the
// entries in any order, its levels and environments
// are all that were seen; its first description stays.
func TestApply(t *testing.T) {
	pool := open(t)
	late := seen("E", time.Hour)
	late.Severity, late.Environment = grouping.SeverityFatal, `de"v\`
	mustApply(t, pool, seen("E", 0), seen("E", time.Second), seen("F", 0))
	mustApply(t, pool, late, seen("E", -time.Hour))
	groups := list(t, pool, "acme", postgres.GroupQuery{Project: "shop"})
	if len(groups) != 2 {
		t.Fatalf("groups %+v", groups)
	}
	g := groups[0]
	if g.Count != 4 || g.Title != "E: it broke" || g.Type != "E" || g.Culprit != "com.acme.A.b" || g.Status != grouping.Unresolved ||
		!g.FirstSeen.Equal(noon.Add(-time.Hour)) || !g.LastSeen.Equal(noon.Add(time.Hour)) ||
		g.Severities != grouping.SeverityError|grouping.SeverityFatal || !slices.Equal(g.Environments, []string{`de"v\`, "prod"}) {
		t.Errorf("group %+v", g)
	}
	why := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (postgres.Explanation, error) {
		_, why, err := postgres.FindGroup(ctx, tx, "acme", g.ID)
		return why, err
	})
	if why.Scope != grouping.ScopeSite || why.Version != grouping.Version || len(why.Parts) != 3 {
		t.Errorf("why %+v", why)
	}
}

// The first occurrences of a group and the newest
// are kept, however transactions split them.
func TestSamples(t *testing.T) {
	pool := open(t)
	total := 0
	for _, size := range []int{1, 3, 2, 1, 40, 1, 1} {
		var all []grouping.Occurrence
		for range size {
			all = append(all, seen("E", time.Duration(total)*time.Minute))
			total++
		}
		mustApply(t, pool, all...)
	}
	id := list(t, pool, "acme", postgres.GroupQuery{})[0].ID
	samples := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) ([]postgres.Occurrence, error) {
		return postgres.Occurrences(ctx, tx, "acme", id)
	})
	if n := len(samples); n < grouping.FirstSamples+2 || n > grouping.FirstSamples+grouping.NewestSamples {
		t.Fatalf("%d samples", n)
	}
	for i := range grouping.FirstSamples {
		if o := samples[len(samples)-1-i]; !o.At.Equal(noon.Add(time.Duration(i) * time.Minute)) {
			t.Errorf("sample %d is of %v", i, o.At)
		}
	}
	newest := samples[0]
	if !newest.At.Equal(noon.Add(time.Duration(total-1)*time.Minute)) || newest.Severity != grouping.SeverityError ||
		len(newest.Exceptions) != 1 || newest.Exceptions[0].Frames[0] != (postgres.Frame{Module: "com.acme.A", Function: "b", File: "A.java", Line: 1, InApp: true}) {
		t.Errorf("newest %+v", newest)
	}
}

// A small transaction replaces as many samples of a
// full group as it has; a large one replaces one.
func TestSamplesOfALargeTransaction(t *testing.T) {
	pool := open(t)
	for _, size := range []int{10, 10, 10, 200, 2} {
		var all []grouping.Occurrence
		for i := range size {
			all = append(all, seen("E", time.Duration(size)*time.Hour+time.Duration(i)*time.Second))
		}
		mustApply(t, pool, all...)
	}
	id := list(t, pool, "acme", postgres.GroupQuery{})[0].ID
	bySize := map[time.Duration]int{}
	for _, o := range read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) ([]postgres.Occurrence, error) {
		return postgres.Occurrences(ctx, tx, "acme", id)
	}) {
		bySize[o.At.Sub(noon).Truncate(time.Hour)/time.Hour]++
	}
	if want := map[time.Duration]int{10: grouping.MaxSamples - 3, 200: 1, 2: 2}; !maps.Equal(bySize, want) {
		t.Errorf("samples by size of their transaction: %v, want %v", bySize, want)
	}
}

// Concurrent workers with the same new errors, in different orders,
// create each group once, lose no count and do not deadlock.
func TestRace(t *testing.T) {
	pool := open(t)
	const workers, kinds, rounds = 6, 20, 5
	var wait sync.WaitGroup
	var created atomic.Int64
	for w := range workers {
		wait.Go(func() {
			for r := range rounds {
				var all []grouping.Occurrence
				for k := range kinds {
					o := seen(fmt.Sprint("E", (k*(2*w+1)+r)%kinds), time.Duration(w)*time.Second)
					o.Error.StackTrace = append(o.Error.StackTrace, calledBy(fmt.Sprintf("m%c", 'a'+(k+w)%5))...)
					all = append(all, o)
				}
				n, err := create(context.Background(), pool, ofProject(math.MaxInt), all...)
				if err != nil {
					t.Error(err)
				}
				created.Add(int64(n))
			}
		})
	}
	wait.Wait()
	groups := list(t, pool, "acme", postgres.GroupQuery{})
	var total int64
	for _, g := range groups {
		total += g.Count
	}
	if len(groups) != kinds || total != workers*kinds*rounds {
		t.Errorf("%d groups with %d occurrences, want %d with %d", len(groups), total, kinds, workers*kinds*rounds)
	}
	if n := created.Load(); n != kinds {
		t.Errorf("%d groups were created, want %d", n, kinds)
	}
}

// JSON allows text that Postgres refuses: it is
// stored with replacements and blocks nothing.
func TestOddText(t *testing.T) {
	pool := open(t)
	odd := "a\x00b\xff\"'\\{}$1\u2028\U0001F600"
	o := seen(odd, 0)
	o.Entry, o.Environment, o.Error.Message, o.Error.StackTrace = "entry", odd, strings.Repeat(odd, 50), []string{"at " + odd + ".x(A.java:1)", odd}
	mustApply(t, pool, o, o)
	g := list(t, pool, "acme", postgres.GroupQuery{})[0]
	if g.Count != 2 || strings.ContainsRune(g.Title+g.Type+g.Culprit, 0) || !strings.HasPrefix(g.Type, "a\uFFFDb\uFFFD\"'\\{}$1") {
		t.Errorf("group %+v", g)
	}
	if found := list(t, pool, "acme", postgres.GroupQuery{Environments: g.Environments}); len(found) != 1 {
		t.Errorf("environment %q finds %d", g.Environments, len(found))
	}
}

// Tenants and projects share nothing: the same error makes
// a group in each, and nobody reads or counts another's.
func TestIsolation(t *testing.T) {
	pool := open(t)
	foreign, other := seen("E", 0), seen("E", 0)
	foreign.Organization, other.Project = "evil", "site"
	mustApply(t, pool, seen("E", 0), foreign, foreign, other)
	ids := map[string]bool{}
	for organization, want := range map[string]int{"acme": 2, "evil": 1, "nobody": 0} {
		groups := list(t, pool, organization, postgres.GroupQuery{})
		if len(groups) != want {
			t.Errorf("%s sees %d groups, want %d", organization, len(groups), want)
		}
		for _, g := range groups {
			ids[organization+g.ID] = true
		}
		unfiltered := read(t, pool, organization, func(ctx context.Context, tx pgx.Tx) (n int, err error) {
			err = tx.QueryRow(ctx, `SELECT count(*) FROM error_groups`).Scan(&n)
			return n, err
		})
		if unfiltered != want {
			t.Errorf("%s sees %d groups without a condition, want %d", organization, unfiltered, want)
		}
	}
	if len(ids) != 3 {
		t.Errorf("ids %v", ids)
	}
}

// Each filter works, alone and with others;
// pages join to the whole list, newest first.
func TestGroups(t *testing.T) {
	pool := open(t)
	b, c := seen("BetaError", time.Minute), seen("GammaError", 2*time.Minute)
	b.Severity, b.Environment, c.Error.Message = grouping.SeverityWarn, "staging", "Payment refused"
	mustApply(t, pool, seen("AlphaError", 0), b, c)
	for _, word := range []string{"%", "_", `\`, "gamma%error", "g_mmaerror", `\gamma`} {
		if found := list(t, pool, "acme", postgres.GroupQuery{Words: []string{word}}); len(found) != 0 {
			t.Errorf("%q stands in no group, and is found in %+v", word, found)
		}
	}
	for want, q := range map[string]postgres.GroupQuery{
		"GammaError BetaError AlphaError ": {Project: "shop"},
		"GammaError BetaError ":            {From: noon.Add(time.Minute)},
		"AlphaError ":                      {To: noon.Add(time.Minute), Status: grouping.Unresolved},
		"BetaError ":                       {Severities: grouping.SeverityWarn | grouping.SeverityFatal},
		"GammaError AlphaError ":           {Environments: []string{"prod", "dev"}},
		"GammaError ":                      {Words: []string{"PAYMENT", "gamma"}},
		"":                                 {Status: grouping.Resolved},
	} {
		got := ""
		for _, g := range list(t, pool, "acme", q) {
			got += g.Type + " "
		}
		if got != want {
			t.Errorf("%+v lists %q, want %q", q, got, want)
		}
	}
	var paged string
	for q := (postgres.GroupQuery{Limit: 1}); ; {
		page := list(t, pool, "acme", q)
		if len(page) == 0 {
			break
		}
		paged += page[0].Type + " "
		q.After = page[0].Cursor()
	}
	if paged != "GammaError BetaError AlphaError " {
		t.Errorf("pages list %q", paged)
	}
}

// A page continues behind groups of the same minute and of the same instant.
func TestPagesWithinAMinute(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("A", 0), seen("B", 0), seen("C", time.Second), seen("D", 61*time.Second), seen("E", 59*time.Second))
	var listed []string
	for q := (postgres.GroupQuery{Limit: 1}); ; {
		page := list(t, pool, "acme", q)
		if len(page) == 0 {
			break
		}
		listed, q.After = append(listed, page[0].Type), page[0].Cursor()
	}
	slices.Sort(listed[3:]) // by their ids before
	if !slices.Equal(listed, []string{"D", "E", "C", "A", "B"}) {
		t.Errorf("pages list %v", listed)
	}
}

// Counting an error of a group updates no index within a minute.
func TestCountsAreHeapOnly(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("E", 0))
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		for i := range 3 {
			tally := grouping.NewTally()
			tally.Add(seen("E", time.Duration(i+1)*time.Second))
			if _, err := (postgres.Writer{NewGroups: ofProject(1)}).Apply(t.Context(), tx, tally.Counts()); err != nil {
				return err
			}
		}
		var updates, heapOnly int
		err := tx.QueryRow(t.Context(), `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'error_groups'`).Scan(&updates, &heapOnly)
		if updates != 3 || heapOnly != 3 {
			t.Errorf("%d of %d updates are heap-only", heapOnly, updates)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An error whose trace is always different is one group,
// counted exactly, and does not fill the table of hashes.
func TestEndlessTraces(t *testing.T) {
	pool := open(t)
	n := 0
	for range 6 {
		var all []grouping.Occurrence
		for range 60 {
			o := seen("E", 0)
			o.Error.StackTrace = append(o.Error.StackTrace, calledBy(fmt.Sprintf("%c%c", 'a'+n%26, 'a'+n/26))...)
			all, n = append(all, o), n+1
		}
		mustApply(t, pool, all...)
	}
	if groups := list(t, pool, "acme", postgres.GroupQuery{}); len(groups) != 1 || groups[0].Count != int64(n) {
		t.Errorf("groups %+v, want one of %d", groups, n)
	}
	hashes := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (n int, err error) {
		err = tx.QueryRow(ctx, `SELECT count(*) FROM group_hashes`).Scan(&n)
		return n, err
	})
	if hashes < 100 || hashes > 200 {
		t.Errorf("%d hashes are kept of %d", hashes, n)
	}
}
