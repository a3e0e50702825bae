package grouping_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
)

// family is a head and its members, each with 7 decisions.
func family(ids ...string) (f grouping.Family) {
	f.Head = grouping.GroupVersion{ID: ids[0], Version: 7}
	for _, id := range ids[1:] {
		f.Members = append(f.Members, grouping.GroupVersion{ID: id, Version: 7})
	}
	return f
}

// What is decided about whole families, each in one line, or the field that is at fault.
func TestRegroup(t *testing.T) {
	a, b := grouping.SplitHashes{Trace: grouping.Hash{1}, Stack: grouping.Hash{9}}, grouping.SplitHashes{Trace: grouping.Hash{2}, Stack: grouping.Hash{9}}
	other := grouping.SplitHashes{Trace: grouping.Hash{3}, Stack: grouping.Hash{8}}
	full, many := family("F"), family("M")
	full.Head.Version = grouping.MaxDecisions
	for n := range grouping.MaxMembers {
		many.Members = append(many.Members, grouping.GroupVersion{ID: fmt.Sprint("m", n)})
	}
	merge := func(f grouping.Family, others ...grouping.Family) func(*int64) (grouping.GroupDecisions, error) {
		return func(ifVersion *int64) (grouping.GroupDecisions, error) { return f.Merge(others, ifVersion, at(60)) }
	}
	unmerge := func(f grouping.Family, ids ...string) func(*int64) (grouping.GroupDecisions, error) {
		return func(ifVersion *int64) (grouping.GroupDecisions, error) { return f.Unmerge(ids, ifVersion, at(60)) }
	}
	split := func(f grouping.Family, group string, of grouping.Hash, samples ...grouping.SplitHashes) func(*int64) (grouping.GroupDecisions, error) {
		return func(ifVersion *int64) (grouping.GroupDecisions, error) {
			return f.Split(group, "shop", of, samples, ifVersion, at(60))
		}
	}
	for name, c := range map[string]struct {
		when func(*int64) (grouping.GroupDecisions, error)
		then string
	}{
		"merge two":                       {merge(family("A"), family("B"), family("C")), "A merged [B C]; B merged into A; C merged into A"},
		"merge what has members":          {merge(family("A", "a"), family("B", "b")), "A merged [B b]; B merged into A; b merged into A: The group that it belonged to was merged."},
		"merge with itself":               {merge(family("A", "a"), family("A", "a")), ""},
		"merge beyond the bound":          {merge(many, family("A")), "into"},
		"merge a full group":              {merge(family("A"), full), "full"},
		"merge into a full group":         {merge(full, family("A")), "full"},
		"take out":                        {unmerge(family("A", "a", "b"), "b"), "A unmerged [b]; b unmerged from A"},
		"take out of a full group":        {unmerge(grouping.Family{Head: full.Head, Members: family("", "a").Members}, "a"), "F unmerged [a]; a unmerged from F"},
		"take out what is on its own":     {unmerge(family("A", "a"), "B"), ""},
		"take out the head":               {unmerge(family("A", "a"), "A"), "groups/0"},
		"split by the message or frames":  {split(family("A"), "A", other.Stack, a, other), "A split stack into *"},
		"split by all frames":             {split(family("A"), "A", a.Trace, a, b), "A split trace into *"},
		"split a member":                  {split(family("A", "m"), "m", a.Stack, a, other), "A split [*]; m split stack into *"},
		"split where all are equal":       {split(family("A"), "A", a.Trace, a, a), "hash"},
		"split where stacks are equal":    {split(family("A"), "A", a.Stack, a, b), "hash"},
		"split without a trace":           {split(family("A"), "A", grouping.Hash{}, a, grouping.SplitHashes{}), "hash"},
		"split what is full":              {split(full, "F", a.Trace, a, b), "full"},
		"take out the same twice at once": {unmerge(family("A", "a"), "a", "a"), "A unmerged [a]; a unmerged from A"},
	} {
		decided, err := c.when(nil)
		if got := told(decided, err); got != c.then {
			t.Errorf("%s: %s, want %s", name, got, c.then)
		}
		six := int64(6)
		var conflict grouping.Conflict
		if _, err := c.when(&six); strings.Contains(c.then, ";") && !errors.As(err, &conflict) {
			t.Errorf("%s of another version: %v", name, err)
		}
	}
}

// told is what was decided, by the order of ids, without the ids of groups that are split off.
func told(decided grouping.GroupDecisions, err error) string {
	var invalid grouping.Invalid
	switch {
	case errors.As(err, &invalid):
		return invalid.Field
	case errors.Is(err, grouping.ErrFull):
		return "full"
	case err != nil:
		return err.Error()
	}
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(decided)) {
		d := decided[id]
		line := fmt.Sprint(id, " ", d.Kind)
		if d.Level != "" {
			line += " " + string(d.Level)
		}
		if d.Into != "" {
			line += " into " + star(d.Into)
		}
		if d.From != "" {
			line += " from " + d.From
		}
		if d.Reason != "" {
			line += ": " + d.Reason
		}
		if len(d.Groups) > 0 {
			line += " [" + star(strings.Join(d.Groups, " ")) + "]"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func star(id string) string {
	if grouping.IsGroupID(id) {
		return "*"
	}
	return id
}

// A member has no state of its own, and is unresolved once it is out; who looks after it stays.
func TestStateOfMembers(t *testing.T) {
	team := grouping.Assignee{ID: "payments"}
	given := []grouping.Decision{{Kind: grouping.WasAssigned, Assignee: team}, resolved(1)}
	merged := grouping.Decision{Kind: grouping.WasMerged, At: at(2), Into: "A"}
	unmerged := grouping.Decision{Kind: grouping.WasUnmerged, At: at(3), From: "A"}
	split := grouping.Decision{Kind: grouping.WasSplit, At: at(2), Into: "B", Like: "00"}
	for name, c := range map[string]struct {
		when []grouping.Decision
		then grouping.State
	}{
		"merged":       {[]grouping.Decision{merged}, grouping.State{Status: grouping.Unresolved, Since: at(2), Assignee: team, Into: "A"}},
		"merged again": {[]grouping.Decision{merged, {Kind: grouping.WasMerged, At: at(4), Into: "B"}}, grouping.State{Status: grouping.Unresolved, Since: at(4), Assignee: team, Into: "B"}},
		"taken out":    {[]grouping.Decision{merged, unmerged}, grouping.State{Status: grouping.Unresolved, Since: at(3), Assignee: team}},
		"the head":     {[]grouping.Decision{{Kind: grouping.WasMerged, At: at(2), Groups: []string{"B"}}}, grouping.State{Status: grouping.Resolved, Since: at(1), Assignee: team}},
		"split":        {[]grouping.Decision{split, {Kind: grouping.WasReopened, At: at(5)}}, grouping.State{Status: grouping.Unresolved, Since: at(5), Assignee: team, Splits: 1}},
	} {
		if got := after(append(slices.Clone(given), c.when...)...); !reflect.DeepEqual(got, c.then) {
			t.Errorf("%s: %+v, want %+v", name, got, c.then)
		}
	}
}

// What was split off stays so whatever is learned, of what was accepted after that.
func TestSplitsStick(t *testing.T) {
	trace := func(caller string) []string {
		return []string{"at com.acme.C.d(C.java:1)", "at org.lib.D.e(D.java:1)", "at com.acme.F.g(F.java:1)", "at com.acme.H.i(H.java:1)", "at com.acme.J.k(J.java:1)", "at com.acme.X." + caller + "(X.java:1)"}
	}
	count := func(caller string, accepted time.Time, learned grouping.Learned) *grouping.Count {
		tally := grouping.NewTally()
		tally.Add(grouping.Occurrence{Project: "shop", Accepted: accepted, Error: grouping.Error{Type: "A", Message: "it broke", StackTrace: trace(caller), Learned: learned}})
		c := tally.Counts()[0]
		var g grouping.Grouper
		c.Describe(&g)
		return c
	}
	before := count("one", at(0), grouping.Learned{})
	splits := grouping.Splits{before.Samples[0].SplitHashes.Stack: {After: at(1), From: "grp_1"}}
	libraries := grouping.Libraries{"org.lib": true}
	for _, learned := range []grouping.Learned{{Splits: splits}, {Splits: splits, Libraries: libraries}} {
		if c := count("one", at(2), learned); c.Deciding().Scope != grouping.ScopeSplit || len(c.Hashes) != 1 {
			t.Errorf("with %v it is %+v", learned, c.Hashes)
		}
		for name, c := range map[string]*grouping.Count{"another": count("two", at(2), learned), "an earlier one": count("one", at(1), learned)} {
			same := learned
			same.Splits = nil
			if want := count("two", at(2), same); c.Deciding() != want.Deciding() {
				t.Errorf("%s with %v is %+v, want %+v", name, learned, c.Hashes, want.Hashes)
			}
		}
	}
	if a, b := count("one", at(2), grouping.Learned{}), count("one", at(2), grouping.Learned{Libraries: libraries}); a.Deciding() == b.Deciding() || a.Samples[0].SplitHashes != b.Samples[0].SplitHashes {
		t.Error("the library changes nothing, or too much")
	}
	var g grouping.Grouper
	split := count("one", at(2), grouping.Learned{Splits: splits})
	_, why := split.Describe(&g)
	if got, want := split.Samples[0].Created(why), "Its first error came. Errors like it were split off from grp_1."; got != want {
		t.Errorf("its cause is %q, want %q", got, want)
	}
	if why.Scope != grouping.ScopeSplit || why.Parts[len(why.Parts)-1] != (grouping.Part{Kind: "group", Value: "grp_1"}) {
		t.Errorf("why: %+v", why)
	}
}
