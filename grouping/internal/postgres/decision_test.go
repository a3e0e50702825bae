package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
)

var ada = postgres.Author{ID: "mem_1", Name: "Ada", Request: "req_1"}

// decide carries out a command at a time after noon, as Ada.
func decide(ctx context.Context, pool *pgxpool.Pool, after time.Duration, command grouping.Command, ids ...string) error {
	return pg.InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, "acme"); err != nil {
			return err
		}
		made, err := postgres.LockHeads(ctx, tx, "acme", ids)
		if err != nil {
			return err
		}
		for _, m := range made {
			if m.Decisions, err = m.Group.State.Decide(command, m.Group.Version, noon.Add(after)); err != nil {
				return err
			}
		}
		changed, err := postgres.Record(ctx, tx, made, ada)
		if err != nil {
			return err
		}
		return bus.Announce(ctx, tx, changed)
	})
}

func mustDecide(t testing.TB, pool *pgxpool.Pool, after time.Duration, command grouping.Command, ids ...string) {
	t.Helper()
	if err := decide(t.Context(), pool, after, command, ids...); err != nil {
		t.Fatal(err)
	}
}

// only is the only group of the organization.
func only(t testing.TB, pool *pgxpool.Pool) postgres.Group {
	t.Helper()
	groups := list(t, pool, "acme", postgres.GroupQuery{})
	if len(groups) != 1 {
		t.Fatalf("there are %d groups: %+v", len(groups), groups)
	}
	return groups[0]
}

// asSystem runs fn in a transaction of the system.
func asSystem(t testing.TB, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) {
	t.Helper()
	if err := pg.InTxAsSystem(t.Context(), pool, fn); err != nil {
		t.Fatal(err)
	}
}

// announced are the facts about decisions, in their order.
func announced(t testing.TB, pool *pgxpool.Pool) (facts []contract.ErrorGroupChanged) {
	t.Helper()
	asSystem(t, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT body FROM facts WHERE type <> $1 ORDER BY position`, contract.TypeErrorsChangeReported)
		if err != nil {
			return err
		}
		facts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (fact contract.ErrorGroupChanged, err error) {
			return fact, row.Scan(&fact)
		})
		return err
	})
	return facts
}

// in is an occurrence of an AlphaError in an environment and release, all of them accepted when they happened.
func in(environment, release string, after time.Duration) grouping.Occurrence {
	o := seen("AlphaError", after)
	o.Environment, o.Release, o.Accepted = environment, release, o.At
	return o
}

// A resolved group is opened again by the first later error, once,
// with the reason; what comes late or again only counts.
func TestRegression(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("AlphaError", 0))
	id := only(t, pool).ID
	mustDecide(t, pool, time.Hour, grouping.Command{Status: grouping.Resolved, Note: "mended"}, id)
	if g := only(t, pool); g.Status != grouping.Resolved || g.Version != 2 || !g.State.Since.Equal(noon.Add(time.Hour)) {
		t.Fatalf("it is %+v", g)
	}
	mustApply(t, pool, seen("AlphaError", 59*time.Minute))
	if g := only(t, pool); g.Status != grouping.Resolved || g.Count != 2 {
		t.Fatalf("after a late error it is %+v", g)
	}
	mustApply(t, pool, seen("AlphaError", 63*time.Minute), seen("AlphaError", 61*time.Minute))
	mustApply(t, pool, seen("AlphaError", 64*time.Minute))
	g := only(t, pool)
	if g.Status != grouping.Unresolved || !g.State.Regressed || g.Version != 3 || g.Count != 5 {
		t.Errorf("after later errors it is %+v", g)
	}
	facts := announced(t, pool)
	want := contract.ErrorGroupChanged{
		ErrorGroup: contract.ErrorGroup{Organization: "acme", Project: "shop", Group: id, Title: g.Title, Type: "AlphaError", Culprit: g.Culprit}, Status: "unresolved", Before: "resolved",
		Version: 3, Environment: "prod", Cause: "It happened in prod after it was resolved.", At: noon.Add(61 * time.Minute),
		Addressed: contract.Addressed{Path: "/console/errors/" + id},
	}
	if len(facts) != 2 || facts[0].Status != "resolved" || facts[0].Actor != "mem_1" || !reflect.DeepEqual(facts[1], want) {
		t.Errorf("announced: %+v, want %+v", facts, want)
	}
	activity := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) ([]postgres.Activity, error) {
		return postgres.FindActivity(ctx, tx, "acme", id, 1000, 10)
	})
	if len(activity) != 3 || activity[0].Kind != grouping.WasRegressed || activity[0].By.ID != "" || activity[1].Note != "mended" || activity[2].By.Name != "Ada" {
		t.Errorf("activity: %+v", activity)
	}
}

// The webhooks of a group's links are told that it is resolved and comes back,
// and nothing else.
func TestLinksAreTold(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("AlphaError", 0))
	id := only(t, pool).ID
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(t.Context(), tx, "acme"); err != nil {
			return err
		}
		made, err := postgres.LockHeads(t.Context(), tx, "acme", []string{id})
		if err != nil {
			return err
		}
		for i, webhook := range []string{"whk_1", "", "whk_1"} {
			link := grouping.Link{URL: fmt.Sprint("https://tracker.example/", i), Webhook: webhook}
			made[0].Decisions = append(made[0].Decisions, grouping.Decision{Kind: grouping.WasLinked, At: noon, Link: link})
		}
		_, err = postgres.Record(t.Context(), tx, made, ada)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mustDecide(t, pool, time.Hour, grouping.Command{Assign: &grouping.Assignee{ID: "payments"}}, id)
	mustDecide(t, pool, time.Hour, grouping.Command{Status: grouping.Resolved}, id)
	mustApply(t, pool, seen("AlphaError", 2*time.Hour))
	var told []string
	for _, fact := range announced(t, pool) {
		if told = append(told, fmt.Sprint(fact.Status, fact.Webhooks)); len(fact.Links) != 3 {
			t.Errorf("links: %+v", fact)
		}
	}
	if want := []string{"unresolved[]", "resolved[whk_1]", "unresolved[whk_1]"}; !slices.Equal(told, want) {
		t.Errorf("told: %q, want %q", told, want)
	}
}

// A fix in staging is no regression while production runs the old release.
func TestRegressionByRelease(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, in("prod", "abc", 0), in("staging", "def", time.Minute))
	id := only(t, pool).ID
	if g := only(t, pool); g.FirstRelease != "abc" || g.LastRelease != "def" {
		t.Errorf("it was first seen in %q, last in %q", g.FirstRelease, g.LastRelease)
	}
	mustDecide(t, pool, time.Hour, grouping.Command{Status: grouping.Resolved, Resolution: grouping.Resolution{Release: "def"}}, id)
	mustApply(t, pool, in("prod", "abc", 2*time.Hour))
	if g := only(t, pool); g.Status != grouping.Resolved {
		t.Fatalf("the old release of production makes it %+v", g)
	}
	mustApply(t, pool, in("prod", "def", 3*time.Hour))
	if g := only(t, pool); g.Status != grouping.Unresolved || !g.State.Regressed {
		t.Errorf("the mended release makes it %+v", g)
	}
	if facts := announced(t, pool); facts[1].Release != "def" || facts[1].Environment != "prod" || facts[1].Cause != "It happened in def in prod after it was resolved in def." {
		t.Errorf("announced: %+v", facts[1])
	}
	sights := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (grouping.SeenReleases, error) {
		return postgres.FindReleases(ctx, tx, postgres.Project{Organization: "acme", Name: "shop"})
	})
	if len(sights) != 3 || sights.Newest("abc") != "def" || !sights[2].First.Equal(noon.Add(3*time.Hour)) {
		t.Errorf("releases: %+v", sights)
	}
}

// Of the releases of a project the last 500 stay.
func TestReleasesAreBounded(t *testing.T) {
	pool := open(t)
	for day := range 8 {
		var occurrences []grouping.Occurrence
		for i := range 90 {
			o := in("prod", fmt.Sprintf("%d.%d", day, i), time.Duration(24*day)*time.Hour)
			o.Error.Type = fmt.Sprint("Error", string(rune('a'+i/19))) // 20 of one kind are told apart
			occurrences = append(occurrences, o)
		}
		mustApply(t, pool, occurrences...)
	}
	sights := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (grouping.SeenReleases, error) {
		return postgres.FindReleases(ctx, tx, postgres.Project{Organization: "acme", Name: "shop"})
	})
	if len(sights) != 500 || sights.Newest("1.0") != "7.89" {
		t.Errorf("%d releases are known, the newest is %q", len(sights), sights.Newest("1.0"))
	}
}

// An ignored group counts, and is opened by enough errors or
// when its time is over, each of them once.
func TestIgnoredUntil(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("AlphaError", 0))
	id := only(t, pool).ID
	mustDecide(t, pool, time.Minute, grouping.Command{Status: grouping.Ignored, Until: grouping.Until{Count: 3}}, id)
	for minute := 2; minute < 6; minute++ {
		if g := only(t, pool); g.Status != grouping.Ignored && minute < 5 {
			t.Fatalf("before minute %d it is %+v", minute, g)
		}
		mustApply(t, pool, seen("AlphaError", time.Duration(minute)*time.Minute))
	}
	g := only(t, pool)
	if g.Status != grouping.Unresolved || g.Version != 2 || g.State.Regressed {
		t.Fatalf("it is %+v", g)
	}
	mustDecide(t, pool, 10*time.Minute, grouping.Command{Status: grouping.Ignored, Until: grouping.Until{At: noon.Add(time.Hour)}}, id)
	for i, now := range []time.Time{noon.Add(time.Hour), noon.Add(61 * time.Minute), noon.Add(62 * time.Minute)} {
		asSystem(t, pool, func(tx pgx.Tx) error {
			ended, err := postgres.EndDue(t.Context(), tx, now)
			if want := map[int]int{1: 1}[i]; err != nil || len(ended) != want {
				t.Errorf("at %v, %d groups end, want %d: %v", now, len(ended), want, err)
			}
			return bus.Announce(t.Context(), tx, ended)
		})
	}
	facts := announced(t, pool)
	if len(facts) != 4 || facts[1].Cause != "It happened 3 times since it was ignored." || facts[3].Cause != "It was ignored until 2026-11-20 13:00:00 UTC." {
		t.Errorf("announced: %+v", facts)
	}
}

// The columns can be made again from the decisions, also those of a
// group whose row is made again from the log.
func TestRebuild(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("AlphaError", 0), seen("BetaError", 0), seen("GammaError", 0))
	byType := map[string]string{}
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{}) {
		byType[g.Type] = g.ID
	}
	team := grouping.Assignee{ID: "payments"}
	mustDecide(t, pool, time.Minute, grouping.Command{Status: grouping.Ignored, Until: grouping.Until{Count: 5}, Assign: &team}, byType["AlphaError"])
	mustDecide(t, pool, time.Minute, grouping.Command{Status: grouping.Resolved}, byType["BetaError"])
	mustApply(t, pool, seen("AlphaError", 2*time.Minute), seen("BetaError", 2*time.Minute))
	before := list(t, pool, "acme", postgres.GroupQuery{})
	decided := func(g postgres.Group) bool { return g.Version > 0 }
	if !slices.ContainsFunc(before, decided) {
		t.Fatalf("nothing is decided: %+v", before)
	}
	asSystem(t, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE error_groups SET status = 'unresolved', assignee = '', due = now(),
			decided = CASE id WHEN $1 THEN jsonb_set(decided, '{status}', '"resolved"') END`, byType["AlphaError"])
		return err
	})
	asSystem(t, pool, func(tx pgx.Tx) error {
		last, err := postgres.Rebuild(t.Context(), tx, eventstore.Stream{})
		if err == nil {
			last, err = postgres.Rebuild(t.Context(), tx, last)
		}
		if last != (eventstore.Stream{}) {
			t.Errorf("it ends at %v", last)
		}
		return err
	})
	asSystem(t, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE error_groups SET due = NULL WHERE version = 0`)
		return err
	})
	if after := list(t, pool, "acme", postgres.GroupQuery{}); !reflect.DeepEqual(after, before) {
		t.Errorf("it is made again as %+v, and was %+v", after, before)
	}

	asSystem(t, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `WITH g AS (DELETE FROM error_groups), o AS (DELETE FROM occurrences) DELETE FROM group_hashes`)
		return err
	})
	mustApply(t, pool, seen("AlphaError", 0), seen("BetaError", 0), seen("GammaError", 0))
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{}) {
		i := slices.IndexFunc(before, func(was postgres.Group) bool { return was.ID == g.ID })
		want := before[i].State
		want.Progress = grouping.Progress{}
		if g.Status != before[i].Status || g.Version != before[i].Version || !reflect.DeepEqual(g.State, want) {
			t.Errorf("from the log it is %+v, and was %+v", g, before[i])
		}
	}
}

// Two who decide at once are told apart by versions, and errors that
// come at the same time open a group once.
func TestDecisionsAtOnce(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("AlphaError", 0), seen("BetaError", 0))
	ids := []string{}
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{}) {
		ids = append(ids, g.ID)
	}
	var waits sync.WaitGroup
	results, zero := make(chan error, 40), int64(0)
	for i := range 40 {
		waits.Go(func() {
			switch i % 4 {
			case 0:
				results <- decide(t.Context(), pool, time.Minute, grouping.Command{Status: grouping.Resolved, IfVersion: &zero}, ids[0])
			case 1:
				results <- decide(t.Context(), pool, time.Minute, grouping.Command{Note: fmt.Sprint(i)}, slices.Clone(ids)...)
			default:
				after := time.Duration(i) * time.Hour // too few in one hour for a spike, which would be one more decision
				results <- apply(t.Context(), pool, seen("AlphaError", after), seen("BetaError", after))
			}
		})
	}
	waits.Wait()
	close(results)
	conflicts := 0
	for err := range results {
		var conflict grouping.Conflict
		if errors.As(err, &conflict) {
			conflicts++
		} else if err != nil {
			t.Error(err)
		}
	}
	facts := announced(t, pool)
	if resolved := 10 - conflicts; resolved > 1 || len(facts) > 2*resolved {
		t.Errorf("%d of 10 resolved version 0, announced: %+v", resolved, facts)
	}
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{}) {
		if g.Count != 21 || g.Version < 10 {
			t.Errorf("it is %+v", g)
		}
	}
}

// Decisions go with their group.
func TestDecisionsExpire(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("AlphaError", 0))
	mustDecide(t, pool, time.Minute, grouping.Command{Status: grouping.Resolved}, only(t, pool).ID)
	pruneAt(t, pool, noon.AddDate(1, 0, 0))
	asSystem(t, pool, func(tx pgx.Tx) error {
		var left []int
		err := tx.QueryRow(t.Context(), `SELECT ARRAY[(SELECT count(*) FROM events), (SELECT count(*) FROM error_groups)]`).Scan(&left)
		if !slices.Equal(left, []int{0, 0}) {
			t.Errorf("%v rows are left", left)
		}
		return err
	})
}

// Decisions are stored as they always were.
func TestStoredDecisions(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("AlphaError", 0))
	id, per := only(t, pool).ID, grouping.Until{At: noon.Add(time.Hour), Count: 3, Per: time.Hour}
	next := grouping.Resolution{Next: true, After: map[string]string{"prod": "2.0"}}
	mustDecide(t, pool, time.Minute, grouping.Command{Status: grouping.Resolved, Resolution: next, Assign: &grouping.Assignee{ID: "mem_1", Name: "Ada"}}, id)
	mustDecide(t, pool, time.Minute, grouping.Command{Status: grouping.Ignored, Until: per, Note: "later"}, id)
	asSystem(t, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT name || ' ' || data || ' ' || metadata FROM events ORDER BY position`)
		if err != nil {
			return err
		}
		stored, err := pgx.CollectRows(rows, pgx.RowTo[string])
		by := ` {"actor":"mem_1","actor_name":"Ada","request":"req_1"}`
		want := []string{
			`grouping.v1.resolved {"at":"2026-11-20T12:01:00Z","resolution":{"next":true,"after":{"prod":"2.0"}}}` + by,
			`grouping.v1.assigned {"at":"2026-11-20T12:01:00Z","assignee":{"id":"mem_1","name":"Ada"}}` + by,
			`grouping.v1.ignored {"at":"2026-11-20T12:01:00Z","until":{"at":"2026-11-20T13:00:00Z","count":3,"per":3600000000000}}` + by,
			`grouping.v1.noted {"at":"2026-11-20T12:01:00Z","note":"later"}` + by,
		}
		if !slices.Equal(stored, want) {
			t.Errorf("stored:\n%q, want\n%q", stored, want)
		}
		return err
	})
	if text, err := json.Marshal(only(t, pool).State); err != nil || string(text) != `{"status":"ignored","since":"2026-11-20T12:01:00Z","until":{"at":"2026-11-20T13:00:00Z","count":3,"per":3600000000000},"assignee":{"id":"mem_1","name":"Ada"}}` {
		t.Errorf("the state is %s, %v", text, err)
	}
}

// Groups of a member who was removed are nobody's, also where that is
// read again; those of others stay.
func TestRemovedMembersLookAfterNothing(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, in("prod", "", 0))
	mustDecide(t, pool, time.Hour, grouping.Command{Assign: &grouping.Assignee{ID: "mem_1", Name: "Ada"}}, only(t, pool).ID)
	for _, step := range []struct{ removed, want string }{{"mem_2", "mem_1"}, {"mem_1", ""}, {"mem_1", ""}} {
		value, err := json.Marshal(contract.MemberRemoved{Organization: "acme", Member: step.removed, RemovedAt: noon.Add(2 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		record := sharedbus.Record{Topic: contract.TopicTenants, Value: value, Headers: []sharedbus.Header{{Key: contract.HeaderType, Value: []byte(contract.TypeMemberRemoved)}}}
		err = pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error { return bus.ConsumeTenants(t.Context(), tx, []sharedbus.Record{record}) })
		if group := only(t, pool); err != nil || group.State.Assignee.ID != step.want {
			t.Errorf("%q looks after it without %s, want %q, %v", group.State.Assignee.ID, step.removed, step.want, err)
		}
	}
	if facts := announced(t, pool); len(facts) != 2 || facts[1].Assignee != "" || facts[1].Cause == "" {
		t.Errorf("announced %+v, want who looks after it and that nobody does", facts)
	}
}
