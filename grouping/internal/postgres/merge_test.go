package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
)

// regroup carries out what decide says about the families of groups, as Ada.
func applyMergesOf(ctx context.Context, pool *pgxpool.Pool, organization string, ids []string, decide func(families []grouping.Family) (grouping.GroupDecisions, error)) error {
	return pg.InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return err
		}
		families, err := postgres.LockFamilies(ctx, tx, pg.Organization(organization), slices.Clone(ids))
		if err != nil {
			return err
		}
		kin := make([]grouping.Family, len(families))
		for i, f := range families {
			kin[i] = f.Versions()
		}
		decided, err := decide(kin)
		if err != nil {
			return err
		}
		made := postgres.DecidedGroups(families, decided)
		changed, err := postgres.Record(ctx, tx, made, ada)
		if err != nil {
			return err
		}
		var moved []string
		for _, m := range made {
			moved = append(moved, m.Group.ID)
		}
		if err := postgres.ApplyMerges(ctx, tx, organization, moved); err != nil {
			return err
		}
		return bus.Announce(ctx, tx, changed)
	})
}

// merge merges groups into the first, at a time after noon.
func merge(t testing.TB, pool *pgxpool.Pool, after time.Duration, ids ...string) {
	t.Helper()
	err := applyMergesOf(t.Context(), pool, "acme", ids, func(families []grouping.Family) (grouping.GroupDecisions, error) {
		into := slices.IndexFunc(families, func(f grouping.Family) bool { return f.Head.ID == ids[0] })
		return families[into].Merge(families, nil, noon.Add(after))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func unmerge(t testing.TB, pool *pgxpool.Pool, after time.Duration, ids ...string) {
	t.Helper()
	err := applyMergesOf(t.Context(), pool, "acme", ids, func(families []grouping.Family) (grouping.GroupDecisions, error) {
		return families[0].Unmerge(ids, nil, noon.Add(after))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// byType are the groups that people see, by their type.
func byType(t testing.TB, pool *pgxpool.Pool) map[string]postgres.Group {
	t.Helper()
	groups := map[string]postgres.Group{}
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{}) {
		groups[g.Type] = g
	}
	return groups
}

// like is an error of a type, with other things that are counted.
func like(typ string, after time.Duration, environment, release string, severity grouping.Severity) grouping.Occurrence {
	o := seen(typ, after)
	o.Environment, o.Release, o.Severity, o.Accepted = environment, release, severity, noon.Add(after)
	return o
}

// The first release is that of the first error, also where this named none, in
// whatever order errors and merges come.
func TestFirstRelease(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, like("AlphaError", 2*time.Minute, "prod", "2", grouping.SeverityError), like("BetaError", 3*time.Minute, "prod", "3", grouping.SeverityError))
	expect := func(when string, want map[string]string) {
		t.Helper()
		got := map[string]string{} // bounded by the types
		for typ, g := range byType(t, pool) {
			got[typ] = g.FirstRelease
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: first in %v, want %v", when, got, want)
		}
	}
	expect("at first", map[string]string{"AlphaError": "2", "BetaError": "3"})
	mustApply(t, pool, like("BetaError", time.Minute, "prod", "", grouping.SeverityError), like("BetaError", 90*time.Second, "prod", "1", grouping.SeverityError))
	expect("after an earlier one without", map[string]string{"AlphaError": "2", "BetaError": ""})
	ids := map[string]string{} // bounded by the types
	for typ, g := range byType(t, pool) {
		ids[typ] = g.ID
	}
	merge(t, pool, time.Hour, ids["AlphaError"], ids["BetaError"])
	expect("merged", map[string]string{"AlphaError": ""})
	mustApply(t, pool, like("BetaError", 0, "prod", "0", grouping.SeverityError))
	expect("after one that is earlier still", map[string]string{"AlphaError": "0"})
}

// A merged group is counted in its head, and is as it would be without that when it is taken out.
func TestMerge(t *testing.T) {
	pool, alone := open(t), open(t)
	both := func(occurrences ...grouping.Occurrence) {
		mustApply(t, pool, occurrences...)
		mustApply(t, alone, occurrences...)
	}
	both(like("AlphaError", time.Hour, "prod", "2", grouping.SeverityError), like("BetaError", 0, "staging", "1", grouping.SeverityFatal),
		like("GammaError", time.Minute, "dev", "1", grouping.SeverityInfo))
	ids := map[string]string{}
	for typ, g := range byType(t, pool) {
		ids[typ] = g.ID
	}
	merge(t, pool, 2*time.Hour, ids["BetaError"], ids["GammaError"])
	merge(t, pool, 2*time.Hour, ids["AlphaError"], ids["BetaError"])
	both(like("GammaError", 3*time.Hour, "prod", "3", grouping.SeverityDebug), like("AlphaError", 150*time.Minute, "prod", "2", grouping.SeverityError))
	both(like("BetaError", 4*time.Hour, "qa", "4", grouping.SeverityDebug))
	g := only(t, pool)
	if g.Type != "AlphaError" || g.Count != 6 || g.Members != 2 || !g.FirstSeen.Equal(noon) || !g.LastSeen.Equal(noon.Add(4*time.Hour)) || g.FirstRelease != "1" || g.LastRelease != "4" ||
		!slices.Equal(g.Environments, []string{"dev", "prod", "qa", "staging"}) || len(g.Severities.Names()) != 4 || g.Version != 1 {
		t.Errorf("all together are %+v", g)
	}
	samples := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) ([]postgres.Occurrence, error) {
		return postgres.Occurrences(ctx, tx, "acme", g.ID)
	})
	if len(samples) != 6 || !samples[0].At.Equal(noon.Add(4*time.Hour)) {
		t.Errorf("%d samples: %+v", len(samples), samples)
	}
	found := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (postgres.Group, error) {
		g, _, err := postgres.FindGroup(ctx, tx, "acme", ids["GammaError"])
		return g, err
	})
	if found.ID != g.ID {
		t.Errorf("the id of a member finds %+v", found)
	}
	unmerge(t, pool, 5*time.Hour, ids["GammaError"])
	unmerge(t, pool, 5*time.Hour, ids["BetaError"])
	both(like("AlphaError", 6*time.Hour, "prod", "5", grouping.SeverityError))
	want := byType(t, alone)
	for typ, g := range byType(t, pool) {
		g.Version, g.State = 0, grouping.State{Status: grouping.Unresolved}
		if !reflect.DeepEqual(g, want[typ]) {
			t.Errorf("taken apart it is\n%+v, want\n%+v", g, want[typ])
		}
	}
	var facts []string
	for _, f := range announced(t, pool) {
		facts = append(facts, fmt.Sprintf("%s %d into %s from %s by %s: %s", f.Type, f.Version, typeOf(ids, f.Into), typeOf(ids, f.From), f.Actor, f.Cause))
	}
	if wantFacts := []string{
		"GammaError 1 into BetaError from  by mem_1: ", "BetaError 2 into AlphaError from  by mem_1: ",
		"GammaError 2 into AlphaError from  by mem_1: The group that it belonged to was merged.",
		"GammaError 3 into  from AlphaError by mem_1: ", "BetaError 3 into  from AlphaError by mem_1: ",
	}; !slices.Equal(slices.Sorted(slices.Values(facts)), slices.Sorted(slices.Values(wantFacts))) {
		t.Errorf("facts: %q", facts)
	}
}

// typeOf is the type whose group has an id.
func typeOf(ids map[string]string, id string) string {
	for typ, of := range ids {
		if of == id {
			return typ
		}
	}
	return ""
}

// A member lives as long as its head, and goes with it, whoever had errors last. So does a split, with the last of its groups.
func TestMergesExpire(t *testing.T) {
	for name, c := range map[string]struct{ head, member string }{"the member is newer": {"Old", "New"}, "the head is": {"New", "Old"}} {
		t.Run(name, func(t *testing.T) {
			pool := open(t)
			mustApply(t, pool, kept("Old", 0, 7), kept("New", 20*day, 7), kept("Other", 0, 7))
			ids := map[string]string{}
			for typ, g := range byType(t, pool) {
				ids[typ] = g.ID
			}
			merge(t, pool, time.Hour, ids[c.head], ids[c.member])
			asSystem(t, pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), `INSERT INTO group_splits VALUES ('acme', 'shop', decode(repeat('00', 16), 'hex'), now(), $1, 'none')`, ids["New"])
				return err
			})
			splits := func() (n int) {
				asSystem(t, pool, func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), `SELECT count(*) FROM group_splits`).Scan(&n) })
				return n
			}
			pruneAt(t, pool, noon.Add(50*day))
			if g := only(t, pool); g.ID != ids[c.head] || g.Members != 1 || g.Count != 2 || splits() != 1 {
				t.Errorf("left is %+v", g)
			}
			mustApply(t, pool, kept("Old", 51*day, 7))
			pruneAt(t, pool, noon.Add(70*day))
			if g := only(t, pool); g.Members != 1 || g.Count != 3 {
				t.Errorf("then it is %+v", g)
			}
			pruneAt(t, pool, noon.Add(120*day))
			if left := rows(t, pool); !slices.Equal(left[:3], []int{0, 0, 0}) || splits() != 0 {
				t.Errorf("rows that are left: %v", left)
			}
		})
	}
}

// Columns that were lost are made again from the decisions.
func TestMergesAreRebuilt(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("AlphaError", 0), seen("BetaError", time.Minute))
	ids := byType(t, pool)
	merge(t, pool, time.Hour, ids["BetaError"].ID, ids["AlphaError"].ID)
	want := only(t, pool)
	asSystem(t, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE error_groups SET merged_into = '', decided = NULL, version = 0 WHERE id = $1`, ids["AlphaError"].ID)
		return err
	})
	asSystem(t, pool, func(tx pgx.Tx) error {
		_, err := postgres.Rebuild(t.Context(), tx, eventstore.Stream{})
		return err
	})
	if got := only(t, pool); !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v, want %+v", got, want)
	}
}

// An error is not counted where a group was until just now: the transaction starts over.
func TestMergeBesideErrors(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("AlphaError", 0), seen("BetaError", time.Minute), seen("GammaError", 0))
	ids := byType(t, pool)
	for _, between := range []func(){
		func() { merge(t, pool, time.Hour, ids["BetaError"].ID, ids["AlphaError"].ID) },
		func() { merge(t, pool, time.Hour, ids["GammaError"].ID, ids["BetaError"].ID) },
		func() { unmerge(t, pool, time.Hour, ids["AlphaError"].ID) },
	} {
		err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
			tally := grouping.NewTally()
			tally.Add(seen("AlphaError", time.Minute))
			_, err := postgres.Writer{NewGroups: ofProject(10)}.Apply(t.Context(), afterHashes{tx, between}, tally.Counts())
			return err
		})
		if err == nil {
			t.Error("an error is counted in a group that is another now")
		}
	}
	if got := byType(t, pool); len(got) != 2 || got["AlphaError"].Count != 1 || got["GammaError"].Count != 2 {
		t.Errorf("it is %+v", got)
	}
}
