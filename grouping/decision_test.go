package grouping_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
)

// at is so many minutes after the first decision of a test.
func at(minutes int) time.Time { return first.Add(time.Duration(minutes) * time.Minute) }

func after(decisions ...grouping.Decision) (s grouping.State) {
	for _, d := range decisions {
		s.Apply(d)
	}
	return s
}

func resolved(minutes int) grouping.Decision {
	return grouping.Decision{Kind: grouping.WasResolved, At: at(minutes)}
}

func ignored(minutes int, until grouping.Until) grouping.Decision {
	return grouping.Decision{Kind: grouping.WasIgnored, At: at(minutes), Until: until}
}

// errorsAt are errors without a release.
func errorsAt(minutes ...int) (seen []grouping.Seen) {
	kind := grouping.Seen{Environment: "prod"}
	for _, m := range minutes {
		kind.Times = append(kind.Times, at(m).UnixMicro())
	}
	return []grouping.Seen{kind}
}

// What follows from a command. Every decision is made at 60.
func TestDecide(t *testing.T) {
	ada, team := grouping.Assignee{ID: "mem_1", Name: "Ada"}, grouping.Assignee{ID: "payments"}
	regressed := grouping.Decision{Kind: grouping.WasRegressed, At: at(2)}
	hour := grouping.Until{At: at(120)}
	seven := int64(7)
	for name, c := range map[string]struct {
		given []grouping.Decision
		when  grouping.Command
		then  []grouping.Decision
	}{
		"resolve":                      {nil, grouping.Command{Status: grouping.Resolved}, []grouping.Decision{{Kind: grouping.WasResolved}}},
		"resolve what is":              {[]grouping.Decision{resolved(0)}, grouping.Command{Status: grouping.Resolved}, nil},
		"resolve in a release":         {[]grouping.Decision{resolved(0)}, grouping.Command{Status: grouping.Resolved, Resolution: grouping.Resolution{Release: "2"}}, []grouping.Decision{{Kind: grouping.WasResolved, Resolution: grouping.Resolution{Release: "2"}}}},
		"resolve what is ignored":      {[]grouping.Decision{ignored(0, hour)}, grouping.Command{Status: grouping.Resolved}, []grouping.Decision{{Kind: grouping.WasResolved}}},
		"resolve what has regressed":   {[]grouping.Decision{resolved(0), regressed}, grouping.Command{Status: grouping.Resolved}, []grouping.Decision{{Kind: grouping.WasResolved}}},
		"ignore":                       {nil, grouping.Command{Status: grouping.Ignored}, []grouping.Decision{{Kind: grouping.WasIgnored}}},
		"ignore what is":               {[]grouping.Decision{ignored(0, hour)}, grouping.Command{Status: grouping.Ignored, Until: hour}, nil},
		"ignore until something else":  {[]grouping.Decision{ignored(0, hour)}, grouping.Command{Status: grouping.Ignored}, []grouping.Decision{{Kind: grouping.WasIgnored}}},
		"ignore what is resolved":      {[]grouping.Decision{resolved(0)}, grouping.Command{Status: grouping.Ignored}, []grouping.Decision{{Kind: grouping.WasIgnored}}},
		"reopen what is resolved":      {[]grouping.Decision{resolved(0)}, grouping.Command{Status: grouping.Unresolved}, []grouping.Decision{{Kind: grouping.WasReopened}}},
		"reopen what is ignored":       {[]grouping.Decision{ignored(0, hour)}, grouping.Command{Status: grouping.Unresolved}, []grouping.Decision{{Kind: grouping.WasUnignored}}},
		"reopen what is open":          {nil, grouping.Command{Status: grouping.Unresolved}, nil},
		"reopen what has regressed":    {[]grouping.Decision{resolved(0), regressed}, grouping.Command{Status: grouping.Unresolved}, nil},
		"assign":                       {nil, grouping.Command{Assign: &ada}, []grouping.Decision{{Kind: grouping.WasAssigned, Assignee: ada}}},
		"assign to who has it":         {[]grouping.Decision{{Kind: grouping.WasAssigned, Assignee: ada}}, grouping.Command{Assign: &ada}, nil},
		"assign to a team":             {[]grouping.Decision{{Kind: grouping.WasAssigned, Assignee: ada}}, grouping.Command{Assign: &team}, []grouping.Decision{{Kind: grouping.WasAssigned, Assignee: team}}},
		"assign to nobody":             {[]grouping.Decision{{Kind: grouping.WasAssigned, Assignee: ada}}, grouping.Command{Assign: &grouping.Assignee{}}, []grouping.Decision{{Kind: grouping.WasAssigned}}},
		"note":                         {nil, grouping.Command{Note: "look\nhere"}, []grouping.Decision{{Kind: grouping.WasNoted, Note: "look\nhere"}}},
		"all at once, of that version": {nil, grouping.Command{Status: grouping.Resolved, Assign: &ada, Note: "done", IfVersion: &seven}, []grouping.Decision{{Kind: grouping.WasResolved}, {Kind: grouping.WasAssigned, Assignee: ada}, {Kind: grouping.WasNoted, Note: "done"}}},
	} {
		for i := range c.then {
			c.then[i].At = at(60)
		}
		got, err := after(c.given...).Decide(c.when, 7, at(60))
		if err != nil || !reflect.DeepEqual(got, c.then) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.then)
		}
	}
}

func TestDecideRefuses(t *testing.T) {
	six := int64(6)
	long := strings.Repeat("é", 2001)
	for field, c := range map[string]grouping.Command{
		"":            {},
		"in_release":  {Status: grouping.Ignored, Resolution: grouping.Resolution{Next: true}},
		"in_release+": {Status: grouping.Resolved, Resolution: grouping.Resolution{Release: "2\n"}},
		"note":        {Note: long},
		"assignee":    {Assign: &grouping.Assignee{ID: long}},
		"until":       {Status: grouping.Resolved, Until: grouping.Until{Count: 1}},
		"until/at":    {Status: grouping.Ignored, Until: grouping.Until{At: at(60)}},
		"until/at+":   {Status: grouping.Ignored, Until: grouping.Until{At: at(60).AddDate(11, 0, 0)}},
		"until/count": {Status: grouping.Ignored, Until: grouping.Until{Count: -1}},
		"until/users": {Status: grouping.Ignored, Until: grouping.Until{Users: -1}},
		"until/per":   {Status: grouping.Ignored, Until: grouping.Until{Per: time.Hour}},
	} {
		_, err := grouping.State{}.Decide(c, 7, at(60))
		var invalid grouping.Invalid
		if !errors.As(err, &invalid) || invalid.Field != strings.TrimSuffix(field, "+") || invalid.Fix == "" {
			t.Errorf("%+v fails with %v, want one of %q", c, err, field)
		}
	}
	var conflict grouping.Conflict
	if _, err := (grouping.State{}).Decide(grouping.Command{Status: grouping.Resolved, IfVersion: &six}, 7, at(60)); !errors.As(err, &conflict) || conflict.Version != 7 {
		t.Errorf("version 6 of 7 fails with %v", err)
	}
	if _, err := (grouping.State{}).Decide(grouping.Command{Note: "one more"}, grouping.MaxDecisions, at(60)); !errors.Is(err, grouping.ErrFull) {
		t.Errorf("one decision too many fails with %v", err)
	}
}

// What follows from errors.
func TestObserve(t *testing.T) {
	perHour := grouping.Until{Count: 3, Per: time.Hour}
	for name, c := range map[string]struct {
		given  []grouping.Decision
		errors [][]grouping.Seen // of each transaction
		want   string            // when and why it is unresolved; empty: it stays
	}{
		"an unresolved group":                    {nil, [][]grouping.Seen{errorsAt(1, 2)}, ""},
		"resolved, an error later":               {[]grouping.Decision{resolved(0)}, [][]grouping.Seen{errorsAt(5, 3)}, "12:03 It happened in prod after it was resolved."},
		"resolved, an error at the same time":    {[]grouping.Decision{resolved(3)}, [][]grouping.Seen{errorsAt(3)}, ""},
		"resolved, an error from before":         {[]grouping.Decision{resolved(10)}, [][]grouping.Seen{errorsAt(9)}, ""},
		"resolved again, the errors from before": {[]grouping.Decision{resolved(0), {Kind: grouping.WasRegressed, At: at(3)}, resolved(10)}, [][]grouping.Seen{errorsAt(3, 5, 9)}, ""},
		"ignored for ever":                       {[]grouping.Decision{ignored(0, grouping.Until{})}, [][]grouping.Seen{errorsAt(1, 2, 3)}, ""},
		"ignored, before its time":               {[]grouping.Decision{ignored(0, grouping.Until{At: at(60)})}, [][]grouping.Seen{errorsAt(60)}, ""},
		"ignored, after its time":                {[]grouping.Decision{ignored(0, grouping.Until{At: at(60)})}, [][]grouping.Seen{errorsAt(59, 61)}, "13:00 It was ignored until 2026-11-20 13:00:00 UTC."},
		"ignored, fewer errors":                  {[]grouping.Decision{ignored(10, grouping.Until{Count: 3})}, [][]grouping.Seen{errorsAt(8, 9, 11), errorsAt(12)}, ""},
		"ignored, enough errors":                 {[]grouping.Decision{ignored(0, grouping.Until{Count: 3})}, [][]grouping.Seen{errorsAt(4), errorsAt(7, 6)}, "12:07 It happened 3 times since it was ignored."},
		"ignored, the next error":                {[]grouping.Decision{ignored(0, grouping.Until{Count: 1})}, [][]grouping.Seen{errorsAt(4)}, "12:04 It happened once since it was ignored."},
		"ignored, too slow":                      {[]grouping.Decision{ignored(0, perHour)}, [][]grouping.Seen{errorsAt(1), errorsAt(30), errorsAt(90)}, ""},
		"ignored, fast enough":                   {[]grouping.Decision{ignored(0, perHour)}, [][]grouping.Seen{errorsAt(1), errorsAt(90), errorsAt(100), errorsAt(80)}, "13:20 It happened 3 times within an hour."},
		"reopened":                               {[]grouping.Decision{resolved(0), {Kind: grouping.WasReopened, At: at(1)}}, [][]grouping.Seen{errorsAt(5)}, ""},
	} {
		state, got := after(c.given...), ""
		for _, seen := range c.errors {
			if d, follows := state.Observe(seen, nil); follows {
				state.Apply(d)
				got = d.At.Format("15:04") + " " + d.Reason
				if state.Status != grouping.Unresolved || state.Regressed != (d.Kind == grouping.WasRegressed) {
					t.Errorf("%s: it is %+v", name, state)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// model is a group as simply as can be: it keeps all that happened.
type model struct {
	status  grouping.Status
	since   int64
	until   grouping.Until
	version int64
	came    []int64 // since the last decision about the status, in the order they came
}

func (m *model) decide(status grouping.Status, until grouping.Until, now time.Time) {
	if status == m.status && (status != grouping.Ignored || until == m.until) {
		return
	}
	*m = model{status: status, since: now.UnixMicro(), until: until, version: m.version + 1}
}

// observe reports whether an error opens the group again.
func (m *model) observe(at int64) bool {
	if m.status == grouping.Unresolved || at <= m.since {
		return false
	}
	m.came = append(m.came, at)
	length := (m.until.Per / 10).Microseconds()
	within := func(other int64) bool {
		return m.until.Per == 0 || other/length > slices.Max(m.came)/length-10
	}
	counted := int64(0)
	for _, other := range m.came {
		if within(other) {
			counted++
		}
	}
	over := !m.until.At.IsZero() && at > m.until.At.UnixMicro()
	if m.status == grouping.Resolved || over || m.until.Count > 0 && counted >= m.until.Count {
		*m = model{status: grouping.Unresolved, version: m.version + 1}
		return true
	}
	return false
}

// Long random histories of decisions and errors, many of them late and
// some repeated, end as those of the model do.
func TestDecisionsLikeModel(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 29)) //nolint:gosec // a test that can be repeated
		state, model, now, history := grouping.State{}, model{status: grouping.Unresolved}, first, []grouping.Decision(nil)
		take := func(decided ...grouping.Decision) {
			for _, d := range decided {
				state.Apply(d)
			}
			history = append(history, decided...)
		}
		for range 400 {
			now = now.Add(time.Duration(random.IntN(600)) * time.Second)
			if random.IntN(6) > 0 {
				at := now.Add(-time.Duration(random.IntN(3600)*random.IntN(3)) * time.Second)
				d, opened := state.Observe([]grouping.Seen{{Times: []int64{at.UnixMicro()}}}, nil)
				if opened {
					take(d)
				}
				if want := model.observe(at.UnixMicro()); opened != want {
					t.Fatalf("seed %d: the error of %v opens it: %t, want %t: %+v", seed, at, opened, want, model)
				}
				continue
			}
			command := grouping.Command{Status: []grouping.Status{grouping.Resolved, grouping.Ignored, grouping.Unresolved}[random.IntN(3)]}
			if command.Status == grouping.Ignored {
				command.Until = []grouping.Until{{}, {At: now.Add(time.Hour)}, {Count: 5}, {Count: 4, Per: time.Hour}}[random.IntN(4)]
			}
			version := int64(len(history)) - int64(random.IntN(2))
			command.IfVersion = &version
			decided, err := state.Decide(command, int64(len(history)), now)
			if conflict := version != int64(len(history)); (err != nil) != conflict {
				t.Fatalf("seed %d: version %d of %d: %v", seed, version, len(history), err)
			} else if conflict {
				continue
			}
			take(decided...)
			model.decide(command.Status, command.Until, now)
			if model.version != int64(len(history)) || string(model.status) != string(max(state.Status, "")) && (state.Status != "" || model.status != grouping.Unresolved) {
				t.Fatalf("seed %d: it is %+v after %d decisions, want %+v", seed, state, len(history), model)
			}
		}
		again := after(history...)
		again.Progress = state.Progress // follows from the errors
		if !reflect.DeepEqual(again, state) {
			t.Fatalf("seed %d: decisions make %+v, and made %+v", seed, again, state)
		}
	}
}

// An ignored group is open again once so many users are affected by errors accepted since, in
// all or within a span; the same ones count once.
func TestIgnoredUntilUsers(t *testing.T) {
	come := func(minute int, users ...uint64) []grouping.Seen {
		seen := errorsAt(minute)
		for _, user := range users {
			seen[0].Arrived = append(seen[0].Arrived, grouping.Arrival{At: at(minute), N: 1, Users: []uint64{user}})
		}
		return seen
	}
	for name, c := range map[string]struct {
		until grouping.Until
		seen  [][]grouping.Seen
		want  string
	}{
		"too few":               {grouping.Until{Users: 3}, [][]grouping.Seen{come(1, 1, 2), come(2, 1, 2, 2)}, ""},
		"enough":                {grouping.Until{Users: 3}, [][]grouping.Seen{come(1, 1, 2), come(2000, 1), come(4000, 3)}, "It affected 3 users since it was ignored."},
		"one":                   {grouping.Until{Users: 1}, [][]grouping.Seen{come(1, 7)}, "It affected a user since it was ignored."},
		"without users":         {grouping.Until{Users: 1}, [][]grouping.Seen{errorsAt(1, 2, 3)}, ""},
		"accepted before":       {grouping.Until{Users: 2}, [][]grouping.Seen{come(-1, 1, 2), come(1, 2)}, ""},
		"too far apart":         {grouping.Until{Users: 2, Per: time.Hour}, [][]grouping.Seen{come(1, 1), come(90, 2)}, ""},
		"within a span":         {grouping.Until{Users: 2, Per: time.Hour}, [][]grouping.Seen{come(1, 1), come(90, 2), come(100, 1)}, "It affected 2 users within an hour."},
		"or so many, the first": {grouping.Until{Users: 9, Count: 2}, [][]grouping.Seen{come(1, 1), come(2, 1)}, "It happened 2 times since it was ignored."},
	} {
		var state grouping.State
		state.Apply(ignored(0, c.until))
		got := ""
		for _, seen := range c.seen {
			text, _ := json.Marshal(state) // as it is stored between
			state = grouping.State{}
			if err := json.Unmarshal(text, &state); err != nil {
				t.Fatal(err)
			}
			if d, ends := state.Observe(seen, nil); ends && got == "" {
				got = d.Reason
				state.Apply(d)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
