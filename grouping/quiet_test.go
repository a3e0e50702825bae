package grouping_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/weirlog/weir/grouping"
)

// archived is a group whose last error happened at 0, archived after a day.
var archived = grouping.Decision{Kind: grouping.WasQuiet, At: at(day), Seen: at(0), Reason: "It had no error for a day."}

const day = 24 * 60 // minutes

// What follows from days without an error; the last one happened at 0.
func TestQuiet(t *testing.T) {
	merged := grouping.Decision{Kind: grouping.WasMerged, At: at(0), Into: "grp_1"}
	for name, c := range map[string]struct {
		given []grouping.Decision
		days  int
		when  int // minutes
		want  string
	}{
		"a day":                  {nil, 1, day + 1, "It had no error for a day."},
		"not yet":                {nil, 1, day, ""},
		"thirty days":            {nil, 30, 30*day + 1, "It had no error for 30 days."},
		"never":                  {nil, 0, 300 * day, ""},
		"resolved":               {[]grouping.Decision{resolved(1)}, 1, 3 * day, ""},
		"ignored":                {[]grouping.Decision{ignored(1, grouping.Until{})}, 1, 3 * day, ""},
		"archived":               {[]grouping.Decision{archived}, 1, 3 * day, ""},
		"a member":               {[]grouping.Decision{merged}, 1, 3 * day, ""},
		"opened by hand of late": {[]grouping.Decision{archived, {Kind: grouping.WasReopened, At: at(2 * day)}}, 1, 3 * day, ""},
		"opened by hand before":  {[]grouping.Decision{archived, {Kind: grouping.WasReopened, At: at(2 * day)}}, 1, 3*day + 1, "It had no error for a day."},
		"assigned of late":       {[]grouping.Decision{{Kind: grouping.WasAssigned, At: at(day), Assignee: grouping.Assignee{ID: "mem_1"}}}, 1, day + 1, "It had no error for a day."},
	} {
		state := after(c.given...)
		d, follows := state.Quiet(at(0), int64(len(c.given)), c.days, at(c.when))
		if follows != (c.want != "") || d.Reason != c.want {
			t.Errorf("%s: %q, want %q", name, d.Reason, c.want)
		}
		if state.Apply(d); follows && (state.Status != grouping.Archived || !state.Seen.Equal(at(0)) || !state.Since.Equal(at(c.when))) {
			t.Errorf("%s: it is %+v", name, state)
		}
	}
	if _, follows := (grouping.State{}).Quiet(at(0), grouping.MaxDecisions, 1, at(3*day)); follows {
		t.Error("one decision too many")
	}
}

// What opens an archived group again: an error that it had not had.
func TestArchivedHappensAgain(t *testing.T) {
	accepted := func(happened, when int) []grouping.Seen {
		return []grouping.Seen{{Environment: "prod", Release: "2", Times: []int64{at(happened).UnixMicro()}, Arrived: []grouping.Arrival{{At: at(when), N: 1}}}}
	}
	for name, c := range map[string]struct {
		seen []grouping.Seen
		want string
	}{
		"a later error":                      {accepted(day+5, day+6), "12:05 It happened in 2 in prod after it was archived."},
		"one from the quiet time":            {accepted(7, day-1), "12:07 It happened in 2 in prod after it was archived."},
		"one that came late":                 {accepted(-100, day+9), "12:09 It happened in 2 in prod after it was archived."},
		"one that is read again":             {accepted(0, 1), ""},
		"an earlier one that is read again":  {accepted(-5, day), ""},
		"the earliest of several, from prod": {append(accepted(day+9, day+9), accepted(day+8, day+9)...), "12:08 It happened in 2 in prod after it was archived."},
	} {
		state := after(archived)
		d, follows := state.Observe(c.seen, nil)
		got := ""
		if follows {
			got = d.At.Format("15:04") + " " + d.Reason
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if state.Apply(d); follows && (!reflect.DeepEqual(state, grouping.State{Status: grouping.Unresolved, Since: d.At}) || d.Kind != grouping.WasReopened) {
			t.Errorf("%s: %+v makes it %+v", name, d, state)
		}
	}
}

// People do anything to an archived group but archive it.
func TestDecideAboutArchived(t *testing.T) {
	for status, kind := range map[grouping.Status]grouping.Kind{
		grouping.Unresolved: grouping.WasReopened, grouping.Resolved: grouping.WasResolved, grouping.Ignored: grouping.WasIgnored,
	} {
		decided, err := after(archived).Decide(grouping.Command{Status: status}, 1, at(2*day))
		if err != nil || len(decided) != 1 || decided[0].Kind != kind || decided[0].Reason != "" {
			t.Errorf("%s: %+v, %v", status, decided, err)
		}
	}
	var invalid grouping.Invalid
	if _, err := (grouping.State{}).Decide(grouping.Command{Status: grouping.Archived}, 0, at(0)); !errors.As(err, &invalid) || invalid.Field != "status" {
		t.Errorf("archived by hand: %v", err)
	}
}

// Days that can't be waited are refused in words that a form can show.
func TestArchiveDays(t *testing.T) {
	for days, want := range map[int]string{0: "", 365: "", 366: "Errors would be archived after 366 days. Use 1 to 365 days, or 0 for never.", -1: "Errors would be archived after -1 days. Use 1 to 365 days, or 0 for never."} {
		if err := grouping.CheckArchiveDays(days); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%d days: %v", days, err)
		}
	}
}
