package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ruletext"
)

var shop = postgres.Project{Organization: "acme", Name: "shop"}

// mustSetRules sets the rules of the project for what is accepted since a time.
func mustSetRules(t testing.TB, pool *pgxpool.Pool, since time.Time, lines ...string) (made ruletext.Version) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(t.Context(), tx, "acme"); err != nil {
			return err
		}
		if err := postgres.LockRules(t.Context(), tx, shop); err != nil {
			return err
		}
		wish := ruletext.Wish{Text: strings.Join(lines, "\n"), Note: "why"}
		_, next, err := wish.Next(rulesIn(t.Context(), tx), func(text string) error {
			_, err := grouping.ParseRules(text)
			return err
		})
		if err != nil {
			return err
		}
		ada := postgres.Author{ID: "mem_1", Name: "Ada", Request: "req_1"}
		made, err = postgres.SaveRules(t.Context(), tx, shop, next, since, ada, func() time.Time { return since })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// rulesIn are the versions of the project's rules that a transaction sees.
func rulesIn(ctx context.Context, tx pgx.Tx) ruletext.Lister {
	return func(before int64, limit int) ([]ruletext.Version, error) {
		return postgres.RuleVersions(ctx, tx, shop, before, limit)
	}
}

// applyRuled groups errors by the rules that held when they were accepted.
func applyRuled(t testing.TB, pool *pgxpool.Pool, book *postgres.RuleBook, occurrences ...grouping.Occurrence) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		tally := grouping.NewTally()
		for _, o := range occurrences {
			of := postgres.Project{Organization: o.Organization, Name: o.Project}
			learned, err := postgres.FindLearned(t.Context(), tx, []postgres.Project{of})
			if err != nil {
				return err
			}
			o.Error.Learned = learned[of]
			if o.Error.Learned.Rules, err = book.At(t.Context(), tx, of, learned[of], o.Accepted); err != nil {
				return err
			}
			if rules := o.Error.Learned.Rules; !rules.Empty() {
				o.Error.Context = &grouping.EntryContext{Service: o.Service, Environment: o.Environment, Metadata: map[string]string{}}
				for _, path := range rules.Paths {
					o.Error.Context.Metadata[path] = "of " + o.Service
				}
			}
			tally.Add(o)
		}
		_, err := postgres.Writer{NewGroups: ofProject(math.MaxInt), Rules: book}.Apply(t.Context(), tx, tally.Counts())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// through is an error that comes from calls, the innermost first.
func through(typ, message string, after time.Duration, calls ...string) grouping.Occurrence {
	o := seen(typ, after)
	o.Accepted, o.Error.Message, o.Error.StackTrace = noon.Add(after), message, nil
	o.Entry = fmt.Sprint(typ, message, calls, after)
	for _, call := range calls {
		o.Error.StackTrace = append(o.Error.StackTrace, "at com.acme."+call+"("+strings.Split(call, ".")[0]+".java:1)")
	}
	return o
}

// counts are those of the groups of the project by title.
func countsOf(t testing.TB, pool *pgxpool.Pool) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{Project: "shop"}) {
		found[g.ID+" "+g.Title] = g.Count
	}
	return found
}

// A group goes on with the first error that rules compare otherwise, and
// others that they tell from it are groups of their own. Its place in the
// history is found again when the rules are as before.
func TestRulesKeepGroups(t *testing.T) {
	pool, book := open(t), postgres.NewRuleBook()
	hour := time.Hour
	one := func(after time.Duration) grouping.Occurrence {
		return through("E", "it broke", after, "Assert.ok", "A.b", "C.d", "E.f", "G.h", "I.one")
	}
	two := func(after time.Duration) grouping.Occurrence {
		return through("E", "it broke", after, "Assert.ok", "A.b", "C.d", "E.f", "G.other", "I.one")
	}
	applyRuled(t, pool, book, one(0), two(0))
	before := countsOf(t, pool)
	mustSetRules(t, pool, noon.Add(hour), "ignore function:ok")
	applyRuled(t, pool, book, one(hour))
	applyRuled(t, pool, book, two(hour), one(hour+1))
	after := countsOf(t, pool)
	if len(before) != 1 || len(after) != 2 {
		t.Fatalf("%v, then %v", before, after)
	}
	for id := range before {
		if after[id] != 4 {
			t.Errorf("the group has %d errors: %v", after[id], after)
		}
	}
	mustSetRules(t, pool, noon.Add(2*hour), "# none")
	applyRuled(t, pool, book, one(2*hour), two(2*hour))
	if again := countsOf(t, pool); len(again) != 2 || slices.Max(slices.Collect(maps.Values(again))) != 6 {
		t.Errorf("with no rules again: %v", again)
	}
}

// What a rule says is one group is never swallowed by a group from before,
// and a group by parts has one for each value.
func TestRulesMakeGroups(t *testing.T) {
	pool, book := open(t), postgres.NewRuleBook()
	of := func(typ, service string, after time.Duration) grouping.Occurrence {
		o := through(typ, "declined", after, "A.b")
		o.Service = service
		return o
	}
	applyRuled(t, pool, book, of("A", "web", 0), of("B", "web", 0), of("C", "web", 0))
	mustSetRules(t, pool, noon.Add(time.Hour), `same "Declined cards" type:A`, `same "Declined cards" type:B`, "group by type, metadata.tenant where type:C")
	applyRuled(t, pool, book, of("A", "web", time.Hour), of("B", "web", time.Hour), of("C", "web", time.Hour), of("C", "job", time.Hour), of("C", "job", time.Hour+1))
	got := map[string]int64{}
	for name, n := range countsOf(t, pool) {
		_, title, _ := strings.Cut(name, " ")
		got[fmt.Sprint(title, " ", n)]++
	}
	want := map[string]int64{"A: declined 1": 1, "B: declined 1": 1, "C: declined 1": 2, "C: declined 2": 1, "Declined cards 2": 1}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{Project: "shop"}) {
		_, why, err := read2(t, pool, g.ID)
		if err != nil {
			t.Fatal(err)
		}
		if g.Title == "Declined cards" && (why.Scope != grouping.ScopeRule || why.Parts[0] != postgres.ExplanationPart{Kind: "rule", Value: `same "Declined cards" type:A`}) {
			t.Errorf("%+v", why)
		}
	}
}

func read2(t testing.TB, pool *pgxpool.Pool, id string) (g postgres.Group, why postgres.Explanation, err error) {
	err = pg.ReadAs(t.Context(), pool, "acme", func(tx pgx.Tx) (err error) {
		g, why, err = postgres.FindGroup(t.Context(), tx, "acme", id)
		return err
	})
	return g, why, err
}

// ruleSets are rules of all kinds that a random history goes through.
var ruleSets = [][]string{
	nil,
	{"ignore function:ok"},
	{"library path:A.java", "scrub email"},
	{"ignore function:ok", `same "Twos" type:E2`},
	{"group by type, metadata.tenant where service:web type:E*", "own path:Lib.java"},
	{"group by default, service where type:E1", `scrub /number [a-z]+/ as "number"`},
	{"ignore module:com.acme.A -function:b", `same "Calls" function:d type:E3`},
}

// randomErrors are some kinds of errors that these rules are about.
func randomErrors(random *rand.Rand, n int) (all []grouping.Occurrence) {
	calls := []string{"Assert.ok", "A.b", "C.d", "E.f", "Lib.g", "G.h"}
	for i := range n {
		var trace []string
		for range 2 + random.IntN(5) {
			trace = append(trace, calls[random.IntN(len(calls))])
		}
		words := []string{"mail from bob@example.com", "mail from nobody", "number seven", "number eight"}
		o := through(fmt.Sprint("E", random.IntN(4)), words[random.IntN(len(words))], time.Duration(i)*time.Minute, trace...)
		o.Service = []string{"web", "job"}[random.IntN(2)]
		all = append(all, o)
	}
	return all
}

// Whatever rules somebody set meanwhile, the groups are the same after all
// errors were read again, in transactions of other sizes.
func TestRulesSurviveARebuild(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		pool := open(t)
		for i := range 6 {
			mustSetRules(t, pool, noon.Add(time.Duration(20+i*25)*time.Minute), append([]string{fmt.Sprint("# ", i)}, ruleSets[random.IntN(len(ruleSets))]...)...)
		}
		errs := randomErrors(random, 200)
		run := func() map[string]int64 {
			book := postgres.NewRuleBook()
			for left := errs; len(left) > 0; {
				n := min(len(left), 1+random.IntN(20))
				applyRuled(t, pool, book, left[:n]...)
				left = left[n:]
			}
			return countsOf(t, pool)
		}
		first := run()
		for _, table := range []string{"occurrences", "group_hashes", "group_days", "group_budgets", "group_packages", "releases", "error_groups"} {
			asSystem(t, pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), `DELETE FROM `+table)
				return err
			})
		}
		if again := run(); !maps.Equal(first, again) {
			t.Errorf("seed %d: %d groups, then %d:\n%v\n%v", seed, len(first), len(again), first, again)
		}
	}
}

// What a preview says of rules is what they do to the same errors.
func TestPreviewIsWhatHappens(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 2))
		pool, book := open(t), postgres.NewRuleBook()
		if random.IntN(2) == 0 {
			mustSetRules(t, pool, noon.Add(-time.Hour), append([]string{"# before"}, ruleSets[random.IntN(len(ruleSets))]...)...)
		}
		errs := randomErrors(random, 40)
		for i := range errs {
			errs[i].Accepted = noon
		}
		was := eachGroup(t, pool, book, errs)
		lines := append([]string{"# after"}, ruleSets[random.IntN(len(ruleSets))]...)
		set, err := grouping.ParseRules(strings.Join(lines, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		said := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (grouping.Preview, error) {
			p, incomplete, err := book.Preview(ctx, tx, shop, set, noon.Add(-time.Hour), noon, func() bool { return false })
			if incomplete {
				t.Error("incomplete")
			}
			return p, err
		})
		if said.Unknown > 0 {
			continue // of metadata that nobody had asked for
		}
		mustSetRules(t, pool, noon.Add(time.Hour), lines...)
		slices.Reverse(errs) // the newest first, as a preview takes them to be
		slices.Reverse(was)
		for i := range errs {
			errs[i].Accepted = noon.Add(2 * time.Hour)
			errs[i].Entry += " again"
		}
		is := eachGroup(t, pool, book, errs)
		if got, want := wordsOf(said), happened(was, is); got != want {
			t.Errorf("seed %d, %q: the preview says\n%s\nbut this happens:\n%s", seed, lines, got, want)
		}
	}
}

// eachGroup applies errors one by one, and returns the group of each.
func eachGroup(t testing.TB, pool *pgxpool.Pool, book *postgres.RuleBook, errs []grouping.Occurrence) (groups []string) {
	before := countsOf(t, pool)
	for _, e := range errs {
		applyRuled(t, pool, book, e)
		after := countsOf(t, pool)
		for name, n := range after {
			if n != before[name] {
				id, _, _ := strings.Cut(name, " ")
				groups = append(groups, id)
			}
		}
		before = after
	}
	return groups
}

func wordsOf(p grouping.Preview) string {
	var lines []string
	ids := func(sides []grouping.PreviewSide) (ids []string) {
		for _, s := range sides {
			ids = append(ids, s.ID)
		}
		slices.Sort(ids)
		return ids
	}
	for _, c := range p.Joins {
		lines = append(lines, fmt.Sprint("join ", ids(c.From)))
	}
	for _, c := range p.Splits {
		lines = append(lines, fmt.Sprint("split ", ids(c.From), len(c.Into)))
	}
	for _, c := range p.Moves {
		lines = append(lines, fmt.Sprint("move ", ids(c.From)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// happened says the same of what groups errors had and have.
func happened(was, is []string) string {
	from, into := map[string]map[string]bool{}, map[string]map[string]bool{}
	add := func(all map[string]map[string]bool, a, b string) {
		if all[a] == nil {
			all[a] = map[string]bool{}
		}
		all[a][b] = true
	}
	for i := range was {
		add(from, is[i], was[i])
		add(into, was[i], is[i])
	}
	var lines []string
	for now, all := range from {
		if ids := slices.Sorted(maps.Keys(all)); len(ids) > 1 || slices.Contains(was, now) && !all[now] {
			lines = append(lines, fmt.Sprint("join ", ids))
		}
	}
	for before, all := range into {
		now := slices.Collect(maps.Keys(all))
		switch {
		case len(now) > 1:
			lines = append(lines, fmt.Sprint("split ", []string{before}, len(now)))
		case !slices.Contains(was, now[0]) && len(from[now[0]]) == 1:
			lines = append(lines, fmt.Sprint("move ", []string{before}))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// The last versions are kept, each with who set it and why; two that are set at once are told apart.
func TestRuleVersions(t *testing.T) {
	pool := open(t)
	for i := range ruletext.MaxVersions + 5 {
		mustSetRules(t, pool, noon.Add(time.Duration(i)*time.Hour), fmt.Sprint("# ", i))
	}
	all := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) ([]ruletext.Version, error) {
		return rulesIn(ctx, tx)(math.MaxInt64, 1000)
	})
	if len(all) != ruletext.MaxVersions || all[0].Number != 105 || all[0].Text != "# 104" || all[0].ByName != "Ada" || all[0].Note != "why" {
		t.Errorf("%d versions: %+v", len(all), all[0])
	}
	for _, organization := range []string{"evil", "acme"} {
		found := read(t, pool, organization, func(ctx context.Context, tx pgx.Tx) (ruletext.Version, error) { return rulesIn(ctx, tx).Newest() })
		if (found.Number > 0) != (organization == "acme") {
			t.Errorf("%s reads %+v", organization, found)
		}
	}
	for _, project := range []string{"lair", "shop"} {
		for _, table := range postgres.Erasable() {
			asSystem(t, pool, func(tx pgx.Tx) error {
				_, _, err := table.Erase(t.Context(), tx, erasure.Deletion{Organization: "acme", Project: project}, "", 1000)
				return err
			})
		}
		left := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (ruletext.Version, error) { return rulesIn(ctx, tx).Newest() })
		if (left.Number > 0) != (project == "lair") {
			t.Errorf("after %s was erased: %+v", project, left)
		}
	}
}
