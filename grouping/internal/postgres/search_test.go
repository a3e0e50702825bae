package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
)

// A search at its bound ends with what was found, reports that, and continues
// from there: one for a rare word reads the whole list, page by page.
func TestSearchesEnd(t *testing.T) {
	const groups = 5000
	pool := open(t)
	all := make([]grouping.Occurrence, groups)
	for i := range all {
		all[i] = seen(word(i)+"Error", time.Duration(groups-i)*time.Second)
	}
	all[groups-10].Error.Type = "Needle"
	mustApply(t, pool, all...)
	asked := 0
	q := postgres.GroupQuery{Project: "shop", Words: []string{"needle"}, Limit: 10, TimeUp: func() bool { asked++; return true }}
	for pages := 1; ; pages++ {
		page := search(t, pool, "acme", q)
		if page.Next == nil {
			if len(page.Groups) != 1 || page.Incomplete || pages != 3 || asked != 2 {
				t.Errorf("page %d: %+v after %d stretches", pages, page, asked)
			}
			break
		}
		if !page.Incomplete || len(page.Groups) != 0 {
			t.Fatalf("page %d: %+v", pages, page)
		}
		q.After = *page.Next
	}
	if page := search(t, pool, "acme", postgres.GroupQuery{Limit: 10, Severities: grouping.SeverityError, TimeUp: func() bool { return true }}); len(page.Groups) != 10 || page.Incomplete || page.Next == nil {
		t.Errorf("a page that is full at once: %d groups, incomplete %v", len(page.Groups), page.Incomplete)
	}
}

// A list of the largest groups ends before it exceeds
// the size of an answer, and continues on the next page.
func TestPagesHaveASize(t *testing.T) {
	const groups, largest = 120, 8 << 20
	pool := open(t)
	var all []grouping.Occurrence
	for i := range groups {
		for environment := range grouping.MaxEnvironments {
			o := seen(word(i)+"Error", time.Duration(i)*time.Second)
			o.Environment = fmt.Sprint(environment) + strings.Repeat("\x01", grouping.MaxEnvironment-2)
			o.Error.Message = strings.Repeat("<", 1000)
			all = append(all, o)
		}
	}
	mustApply(t, pool, all...)
	var ids []string
	for q, pages := (postgres.GroupQuery{Limit: 1000}), 1; ; pages++ {
		page := search(t, pool, "acme", q)
		if text, err := json.Marshal(page.Groups); err != nil || len(text) > largest {
			t.Fatalf("a page of %d bytes: %v", len(text), err)
		}
		for _, g := range page.Groups {
			ids = append(ids, g.ID)
		}
		if page.Next == nil {
			if pages < 2 {
				t.Error("all is one page")
			}
			break
		}
		q.After = *page.Next
	}
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != groups {
		t.Errorf("pages hold %d groups, want %d", n, groups)
	}
}

// A range ends with a minute, also one with more groups than a range should have.
func TestRangesEndWithMinutes(t *testing.T) {
	const groups = 5000
	pool := open(t)
	all := make([]grouping.Occurrence, groups)
	for i := range all {
		all[i] = seen(word(i)+"Error", time.Duration(groups-i)*time.Millisecond)
	}
	all[10].Error.Type, all[groups-10].Error.Type = "Needle", "Needles"
	all[groups-1] = seen("OldNeedle", -time.Hour)
	mustApply(t, pool, all...)
	for _, by := range []postgres.Sorting{"", postgres.ByUsers, postgres.ByCount} {
		page := search(t, pool, "acme", postgres.GroupQuery{Words: []string{"needle"}, Limit: 10, Sort: by, Now: noon.Add(time.Hour)})
		if len(page.Groups) != 3 || page.Next != nil {
			t.Errorf("by %q: %d groups, next %v", by, len(page.Groups), page.Next)
		}
	}
	q := postgres.GroupQuery{Words: []string{"needle"}, Limit: 1, TimeUp: func() bool { return true }}
	var found []string
	for range 20 { // pages, and some that ended early
		page := search(t, pool, "acme", q)
		found = append(found, page.IDs()...)
		if page.Next == nil {
			break
		}
		q.After = *page.Next
	}
	if slices.Sort(found); len(slices.Compact(found)) != 3 || len(found) != 3 {
		t.Errorf("page by page: %v", found)
	}
}

// Samples are stored bounded, and mark what is missing.
func TestSamplesAreBounded(t *testing.T) {
	const largest = 64 << 10
	pool := open(t)
	o := seen("E", 0)
	o.Message, o.Error.Message = strings.Repeat("<", 10<<10), strings.Repeat("€", 30<<10)
	o.Error.StackTrace = nil
	for i := range 300 {
		o.Error.StackTrace = append(o.Error.StackTrace, fmt.Sprintf("Caused by: com.acme.%sException: %s", word(i), strings.Repeat("m", 1500)))
		for range 3 {
			o.Error.StackTrace = append(o.Error.StackTrace, fmt.Sprintf("\tat com.acme.%s.b(A.java:1)", strings.Repeat(word(i), 500)))
		}
	}
	deep := seen("F", 0)
	for i := range 10_000 {
		deep.Error.StackTrace = append(deep.Error.StackTrace, fmt.Sprintf("\tat com.acme.%s.b(A.java:1)", word(i)))
	}
	mustApply(t, pool, o, deep)
	if n := system(t, pool, `SELECT max(pg_column_size(o.*)) FROM occurrences o`); n > largest {
		t.Errorf("a sample has %d bytes", n)
	}
	if n := system(t, pool, `SELECT max(pg_column_size(g.*)) FROM error_groups g`); n > largest {
		t.Errorf("a group has %d bytes", n)
	}
	more := 0
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{}) {
		for _, s := range samples(t, g.ID, pool) {
			for _, x := range s.Exceptions {
				more += x.MoreFrames + x.MoreExceptions
			}
			if len(s.Message) > 1000 || g.Type == "E" && !strings.HasSuffix(s.Message, "…") {
				t.Errorf("message %q", s.Message)
			}
		}
	}
	if more < 1000 {
		t.Errorf("%d frames and errors are said to be missing", more)
	}
}

func samples(t *testing.T, group string, pool *pgxpool.Pool) []postgres.Occurrence {
	t.Helper()
	return read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) ([]postgres.Occurrence, error) {
		return postgres.Occurrences(ctx, tx, "acme", group)
	})
}

// thrown is an error of the type with these calls of com.acme, the innermost first.
func thrown(typ string, calls ...string) grouping.Occurrence {
	o := seen(typ, 0)
	o.Error.StackTrace = nil
	for _, call := range calls {
		o.Error.StackTrace = append(o.Error.StackTrace, "at com.acme."+call+"(A.java:1)")
	}
	return o
}

// similarTo applies the errors, and returns the types of the groups that
// may be similar to that of the first.
func similarTo(t *testing.T, first grouping.Occurrence, others ...grouping.Occurrence) (types []string) {
	t.Helper()
	pool := open(t)
	mustApply(t, pool, append(others, first)...)
	of := list(t, pool, "acme", postgres.GroupQuery{Words: []string{first.Error.Message}})[0]
	found := read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (postgres.Candidates, error) {
		return postgres.Similar(ctx, tx, "acme", of.ID)
	})
	if found.Of.ID != of.ID {
		t.Errorf("similar to group %q instead of %q", found.Of.ID, of.ID)
	}
	for _, other := range found.Others {
		types = append(types, other.Type)
	}
	slices.Sort(types)
	return types
}

// Groups may be similar that share the loosest hash or a call.
func TestSimilar(t *testing.T) {
	of := thrown("Declined", "Card.charge", "Shop.pay")
	of.Error.Message = "no money"
	got := similarTo(t, of, thrown("Declined", "Card.charge", "Job.renew"), thrown("Broken", "Pipe.read", "Shop.pay"), thrown("Broken", "Pipe.read", "Job.renew"))
	if want := []string{"Broken", "Declined"}; !slices.Equal(got, want) {
		t.Errorf("similar are %v, want %v", got, want)
	}
}

// Where too many groups share a call, those
// are compared that share a rare one.
func TestSimilarByRareCalls(t *testing.T) {
	of := thrown("Declined", "Card.charge", "Shop.main")
	of.Error.Message = "no money"
	others := []grouping.Occurrence{thrown("Broken", "Pipe.read", "Card.charge", "Job.main")}
	for i := range 60 {
		others = append(others, thrown("Lost", fmt.Sprintf("Way%c%c.find", 'a'+i/26, 'a'+i%26), "Shop.main"))
	}
	if got := similarTo(t, of, others...); len(got) != 50 || got[0] != "Broken" {
		t.Errorf("%d are similar: %v", len(got), got)
	}
}

// Ids of a search are found up to a limit, the others are counted; groups
// that are as wanted already are neither.
func TestFindIDs(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, seen("AlphaError", 0), seen("BetaError", time.Second), seen("GammaError", 2*time.Second))
	find := func(q postgres.GroupQuery, limit int) (found postgres.Found) {
		return read(t, pool, "acme", func(ctx context.Context, tx pgx.Tx) (postgres.Found, error) {
			return postgres.FindIDs(ctx, tx, "acme", q, limit)
		})
	}
	newest := list(t, pool, "acme", postgres.GroupQuery{})[0].ID
	if found := find(postgres.GroupQuery{Words: []string{"error"}}, 1); len(found.IDs) != 1 || found.IDs[0] != newest || found.More != 2 || found.Incomplete {
		t.Errorf("found %+v", found)
	}
	mustDecide(t, pool, time.Minute, grouping.Command{Status: grouping.Resolved}, newest)
	team := "payments"
	for _, c := range []struct {
		unlike postgres.Unlike
		want   int
	}{
		{postgres.Unlike{Status: grouping.Resolved}, 2},
		{postgres.Unlike{Status: grouping.Unresolved}, 1},
		{postgres.Unlike{Assignee: &team}, 3},
		{postgres.Unlike{Assignee: new(string)}, 0},
		{postgres.Unlike{Status: grouping.Resolved, Assignee: new(string)}, 2},
	} {
		if found := find(postgres.GroupQuery{Unlike: c.unlike}, 10); len(found.IDs) != c.want || found.More != 0 {
			t.Errorf("%+v: found %+v, want %d", c.unlike, found, c.want)
		}
	}
	if found := find(postgres.GroupQuery{Project: "lair"}, 10); len(found.IDs) != 0 {
		t.Errorf("of another project: %+v", found)
	}
}

// New since the last deploy is what was first seen in the newest release of a
// project, or after it had come, in the environments that are asked for.
func TestNewSinceDeploy(t *testing.T) {
	pool := open(t)
	for hour, o := range []struct{ typ, environment, release string }{
		{"Old", "prod", "1"}, {"Old", "prod", "2"}, {"New", "prod", "2"}, {"Later", "prod", ""}, {"Old", "staging", "3"}, {"Staged", "staging", "3"},
	} {
		e := at(o.typ, noon.Add(time.Duration(hour)*time.Hour))
		e.Environment, e.Release = o.environment, o.release
		mustApply(t, pool, e)
	}
	for environments, want := range map[string]string{"": "Staged", "prod": "Later New", "staging": "Staged", "moon": ""} {
		q := postgres.GroupQuery{NewSince: true}
		if environments != "" {
			q.Environments = []string{environments}
		}
		var types []string
		for _, g := range list(t, pool, "acme", q) {
			types = append(types, g.Type)
		}
		if got := strings.Join(types, " "); got != want {
			t.Errorf("in %q new are %q, want %q", environments, got, want)
		}
	}
}

// Groups are found by a part of their type, and by the releases in which they were seen.
func TestSearchByTypeAndRelease(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, in("prod", "1", 0), in("prod", "2", time.Hour), in("prod", "3", 2*time.Hour), seen("BetaError", 0))
	for want, q := range map[string]postgres.GroupQuery{
		"AlphaError": {Type: "alpha"}, "BetaError": {Type: "BETA"}, "AlphaError ": {Release: "1"}, "AlphaError  ": {Type: "Error", Release: "3"},
		"AlphaError   ": {Release: "2"}, "": {Release: "4"}, " ": {Type: "%"},
	} {
		if got := typesOf(t, pool, q); got != strings.TrimSpace(want) {
			t.Errorf("%+v finds %q", q, got)
		}
	}
}

func typesOf(t *testing.T, pool *pgxpool.Pool, q postgres.GroupQuery) (types string) {
	t.Helper()
	for _, g := range list(t, pool, "acme", q) {
		types += g.Type
	}
	return types
}

// A group is found by its first release and by the last fifty that came, each of which comes back when it is seen again;
// of merged groups by those of all.
func TestReleasesOfGroupsAreBounded(t *testing.T) {
	pool := open(t)
	found := func(release string) bool {
		return typesOf(t, pool, postgres.GroupQuery{Release: release}) == "AlphaError"
	}
	for n := range grouping.MaxGroupReleases + 2 {
		mustApply(t, pool, in("prod", fmt.Sprint("r", n), time.Duration(n)*time.Minute))
	}
	for release, want := range map[string]bool{"r0": true, "r1": false, "r2": true, "r30": true, "r51": true} {
		if found(release) != want {
			t.Errorf("%s: found %t, want %t", release, !want, want)
		}
	}
	mustApply(t, pool, in("prod", "r1", 2*time.Hour))
	if !found("r1") || found("r2") {
		t.Errorf("seen again: r1 is found: %t, r2: %t", found("r1"), found("r2"))
	}
	beta := in("prod", "of beta", time.Hour)
	beta.Error.Type = "BetaError"
	mustApply(t, pool, beta)
	idOf := func(typ string) string { return list(t, pool, "acme", postgres.GroupQuery{Type: typ})[0].ID }
	merge(t, pool, 3*time.Hour, idOf("Alpha"), idOf("Beta"))
	if !found("of beta") || !found("r1") || !found("r51") || found("r3") {
		t.Errorf("merged: of beta %t, r1 %t, r51 %t, r3 %t", found("of beta"), found("r1"), found("r51"), found("r3"))
	}
}
