package grouping_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/testenv"
)

// monday is a Monday at noon in UTC, and 13:00 in Berlin.
var monday = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// An alert is sent at once, then gathers, and holds back what it should; each
// step is what came or was done, and what became of it.
func TestAlertWaits(t *testing.T) {
	const came, sends, crowds, mutes, opens = "came", "sends", "crowds", "mutes", "opens"
	type step struct {
		after  time.Duration
		does   string
		groups string // one letter each
		want   string // what became of it, and how long after monday it is due
	}
	office := grouping.Hours{Days: []time.Weekday{time.Monday, time.Tuesday}, From: 8 * 60, To: 14 * 60, Zone: "Europe/Berlin"}
	for name, c := range map[string]struct {
		hours grouping.Hours
		steps []step
	}{
		"at once, then gathered": {steps: []step{
			{0, came, "a", "due 0s"}, {time.Second, sends, "", "sent a; sent 1"}, {time.Minute, came, "b", "gathered 1; due 5m1s"},
			{2 * time.Minute, came, "cb", "gathered 2; due 5m1s"}, {6 * time.Minute, sends, "", "sent bc; sent 2"}, {20 * time.Minute, came, "d", "due 20m0s"},
		}},
		"a flood is one message": {steps: []step{
			{0, came, "abcdefghijklmno", "due 0s"}, {time.Second, sends, "", "sent abcdefghij+5; sent 15"}, {time.Hour, sends, "", ""},
		}},
		"muted with an end": {steps: []step{
			{0, came, "a", "due 0s"}, {time.Second, mutes, "", "muted 1"}, {time.Minute, came, "bc", "muted 2"}, {59 * time.Minute, came, "d", "muted 1"},
			{2 * time.Hour, came, "e", "due 2h0m0s"}, {2 * time.Hour, sends, "", "sent e; sent 1"},
		}},
		"outside its hours": {hours: office, steps: []step{
			{0, came, "a", "due 0s"}, {time.Second, sends, "", "sent a; sent 1"}, {59 * time.Minute, came, "b", "due 59m0s"},
			{time.Hour, sends, "", "after_hours 1; due 19h0m0s"}, {2 * time.Hour, came, "c", "after_hours 1; due 19h0m0s"},
			{19 * time.Hour, sends, "", "sent bc; sent 2"}, {26 * time.Hour, came, "d", "after_hours 1; due 163h0m0s"},
		}},
		"too many messages of the organization": {steps: []step{
			{0, came, "a", "due 0s"}, {time.Second, crowds, "", "over_limit 1; due 10m1s"}, {time.Minute, came, "b", "gathered 1; due 10m1s"},
			{11 * time.Minute, sends, "", "sent ab; sent 2"},
		}},
		"decided meanwhile": {steps: []step{
			{0, came, "aXY", "due 0s"}, {time.Second, sends, "", "sent a; decided 2, sent 1"}, {time.Hour, came, "X", "due 1h0m0s"}, {time.Hour, sends, "", "decided 1"},
		}},
		"too few, or long ago": {steps: []step{{0, came, "<", "below 1"}, {0, came, "!", "stale 1"}}},
		"a rule of other hours": {hours: office, steps: []step{
			{2 * time.Hour, came, "a", "after_hours 1; due 19h0m0s"}, {3 * time.Hour, opens, "", "due 3h0m0s"}, {3 * time.Hour, sends, "", "sent a; sent 1"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rule := grouping.DefaultAlertRule()
			rule.Hours = c.hours
			alert := grouping.ErrorAlert{AlertRule: rule}
			for _, s := range c.steps {
				now := monday.Add(s.after)
				var got []string
				var lines []grouping.AlertLine
				switch s.does {
				case came:
					lines = alert.Take(noticesOf(s.groups, now), now)
				case mutes:
					rule.MutedUntil = now.Add(time.Hour)
					lines = alert.Change(rule, now)
				case opens:
					rule.Hours = grouping.Hours{}
					lines = alert.Change(rule, now)
				default:
					var sent grouping.Waiting
					sent, lines = alert.Send(now, s.does == sends, func(group string) bool { return group != "X" && group != "Y" })
					if len(sent.Listed) > 0 {
						got = append(got, "sent "+groupsIn(sent))
					}
				}
				var became []string
				for _, line := range lines {
					became = append(became, fmt.Sprintf("%s %d", line.Outcome, line.Groups))
				}
				if len(became) > 0 {
					got = append(got, strings.Join(became, ", "))
				}
				if !alert.Due.IsZero() {
					got = append(got, "due "+alert.Due.Sub(monday).String())
				}
				if text := strings.Join(got, "; "); text != s.want {
					t.Errorf("after %s, %s %s: %q, want %q", s.after, s.does, s.groups, text, s.want)
				}
			}
		})
	}
}

func noticesOf(groups string, at time.Time) (notices []grouping.Notice) {
	for _, group := range groups {
		n := grouping.Notice{Group: string(group), Trigger: grouping.OnNew, At: at, Below: group == '<'}
		if group == '!' {
			n.At = at.Add(-25 * time.Hour)
		}
		notices = append(notices, n)
	}
	return notices
}

func groupsIn(w grouping.Waiting) (text string) {
	for _, n := range w.Listed {
		text += n.Group
	}
	if w.More > 0 {
		text += fmt.Sprintf("+%d", w.More)
	}
	return text
}

// Hours end at midnight or after it, and follow the clocks of their zone.
func TestHours(t *testing.T) {
	for _, c := range []struct {
		hours    grouping.Hours
		at, next string
	}{
		{grouping.Hours{}, "2026-11-23T12:00:00Z", "2026-11-23T12:00:00Z"},
		{grouping.Hours{From: 9 * 60, To: 17 * 60}, "2026-11-23T17:00:00Z", "2026-11-24T09:00:00Z"},
		{grouping.Hours{From: 22 * 60, To: 6 * 60}, "2026-11-23T05:59:00Z", "2026-11-23T05:59:00Z"},
		{grouping.Hours{From: 22 * 60, To: 6 * 60}, "2026-11-23T06:00:00Z", "2026-11-23T22:00:00Z"},
		{grouping.Hours{Days: []time.Weekday{time.Monday}, From: 22 * 60, To: 6 * 60}, "2026-11-24T05:00:00Z", "2026-11-24T05:00:00Z"},
		{grouping.Hours{Days: []time.Weekday{time.Monday}, From: 22 * 60, To: 6 * 60}, "2026-11-24T06:00:00Z", "2026-11-30T22:00:00Z"},
		{grouping.Hours{From: 9 * 60, To: 17 * 60, Zone: "Europe/Berlin"}, "2026-03-28T20:00:00Z", "2026-03-29T07:00:00Z"}, // the night of summer time
		{grouping.Hours{From: 2*60 + 30, To: 4 * 60, Zone: "Europe/Berlin"}, "2026-03-28T20:00:00Z", "2026-03-29T01:30:00Z"},
	} {
		at, _ := time.Parse(time.RFC3339, c.at)
		if got := c.hours.Next(at).UTC().Format(time.RFC3339); got != c.next {
			t.Errorf("%+v after %s: %s, want %s", c.hours, c.at, got, c.next)
		}
	}
}

// A rule picks of what came to a group what it tells.
func TestNotices(t *testing.T) {
	came := func(count, came int64, environment string, decided ...grouping.Decision) grouping.Counted {
		return grouping.Counted{Group: "g", Title: "PaymentFailed: no card", Type: "PaymentFailed", Status: grouping.Unresolved, Severities: grouping.SeverityError,
			Environments: []string{environment}, Count: count, Came: came, Decided: decided,
			Seen: []grouping.Seen{{Environment: environment, Arrived: []grouping.Arrival{{At: monday, Severity: grouping.SeverityError, N: came}}}}}
	}
	regressed := grouping.Decision{Kind: grouping.WasRegressed, Environment: "prod", Reason: "It came back.", At: monday}
	about := func(c grouping.Counted) grouping.Counted {
		c.Seen[0].Release, c.Services, c.Hosts, c.Assignee = "1.2", []string{"pay"}, []string{"web-1"}, grouping.Assignee{ID: "mem_1", Name: "Ada Lovelace"}
		return c
	}
	words := func(line string) func(r *grouping.AlertRule) {
		return func(r *grouping.AlertRule) { testenv.Must(t, r.Ask(line, "")) }
	}
	manyOf := func(line string) func(r *grouping.AlertRule) {
		return func(r *grouping.AlertRule) {
			r.Triggers, r.Count, r.Per = []grouping.Trigger{grouping.OnMany}, 10, time.Hour
			words(line)(r)
		}
	}
	decidedByTime := came(9, 0, "prod", grouping.Decision{Kind: grouping.Kind(grouping.OnUnignored), At: monday})
	decidedByTime.Seen, decidedByTime.LastRelease = nil, "1.2"
	ignored := came(2, 1, "prod")
	ignored.Status = grouping.Ignored
	for name, c := range map[string]struct {
		rule func(r *grouping.AlertRule)
		of   grouping.Counted
		want string
	}{
		"the first":                            {nil, came(1, 1, "prod"), "new below"},
		"the second":                           {nil, came(2, 1, "prod"), "new"},
		"two at once":                          {nil, came(2, 2, "prod"), "new"},
		"the third":                            {nil, came(3, 1, "prod"), ""},
		"the first, as is wanted":              {func(r *grouping.AlertRule) { r.NewFrom = 1 }, came(1, 1, "prod"), "new"},
		"not in its environment":               {func(r *grouping.AlertRule) { r.Environments = []string{"prod"} }, came(2, 1, "staging"), ""},
		"not of its level":                     {func(r *grouping.AlertRule) { r.Severities = grouping.SeverityFatal }, came(2, 1, "prod"), ""},
		"of its words":                         {func(r *grouping.AlertRule) { r.Words = []string{"payment", "CARD"} }, came(2, 1, "prod"), "new"},
		"of its type":                          {func(r *grouping.AlertRule) { r.Words = []string{"type:paymentfailed", `"no card"`} }, came(2, 1, "prod"), "new"},
		"of another type":                      {func(r *grouping.AlertRule) { r.Words = []string{"type:card"} }, came(2, 1, "prod"), ""},
		"of its release":                       {words("release:1.2"), about(came(2, 1, "prod")), "new"},
		"of another release":                   {words("release:1.3"), about(came(2, 1, "prod")), ""},
		"of its service":                       {words("service:pay"), about(came(2, 1, "prod")), "new"},
		"of another service":                   {words("service:cart"), about(came(2, 1, "prod")), ""},
		"of its host":                          {words("host:web-1"), about(came(2, 1, "prod")), "new"},
		"of another host":                      {words("host:web"), about(came(2, 1, "prod")), ""},
		"of its member, by id":                 {words("assigned:mem_1"), about(came(2, 1, "prod")), "new"},
		"of its member, by name":               {words(`assigned:"ada lovelace"`), about(came(2, 1, "prod")), "new"},
		"of another member":                    {words("assigned:mem_2"), about(came(2, 1, "prod")), ""},
		"of nobody, but assigned":              {words("assigned:nobody"), about(came(2, 1, "prod")), ""},
		"of nobody":                            {words("assigned:nobody"), came(2, 1, "prod"), "new"},
		"decided by time, of its last release": {words("release:1.2"), decidedByTime, "unignored"},
		"many of its release":                  {manyOf("release:1.2"), about(came(90, 10, "prod")), "many"},
		"many of another release":              {manyOf("release:1.3"), about(came(90, 10, "prod")), ""},
		"of other words":                       {func(r *grouping.AlertRule) { r.Words = []string{"payment", "bank"} }, came(2, 1, "prod"), ""},
		"ignored":                              {nil, ignored, ""},
		"regressed":                            {nil, came(9, 1, "prod", regressed), "regressed"},
		"regressed elsewhere":                  {func(r *grouping.AlertRule) { r.Environments = []string{"staging"} }, came(9, 1, "prod", regressed), ""},
		"spiking":                              {func(r *grouping.AlertRule) { r.Triggers = []grouping.Trigger{grouping.OnSpiking} }, came(9, 1, "prod", grouping.Decision{Kind: "spiking"}), "spiking"},
		"spiking, not asked for":               {nil, came(9, 1, "prod", grouping.Decision{Kind: "spiking"}), ""},
		"resolved by a person":                 {nil, came(9, 1, "prod", grouping.Decision{Kind: grouping.WasResolved}), ""},
		"accepted before the rule":             {func(r *grouping.AlertRule) { r.Name = "late" }, came(2, 1, "prod"), ""},
		"many": {func(r *grouping.AlertRule) {
			r.Triggers, r.Count, r.Per = []grouping.Trigger{grouping.OnMany}, 10, time.Hour
		}, came(90, 10, "prod"), "many"},
		"not many": {func(r *grouping.AlertRule) {
			r.Triggers, r.Count, r.Per = []grouping.Trigger{grouping.OnMany}, 11, time.Hour
		}, came(90, 10, "prod"), ""},
	} {
		rule, since := grouping.DefaultAlertRule(), monday
		if c.rule != nil {
			c.rule(&rule)
		}
		if rule.Name == "late" {
			since = monday.Add(time.Second)
		}
		var got []string
		for _, n := range rule.Notices(since, &c.of, rule.Reach(since, c.of.Seen, &grouping.Burst{})) {
			word := string(n.Trigger)
			if n.Below {
				word += " below"
			}
			got = append(got, word)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// So many within a time are told once, and again when they have been fewer,
// in whatever portions they come.
func TestBursts(t *testing.T) {
	rule := grouping.DefaultAlertRule()
	rule.Triggers, rule.Count, rule.Per = []grouping.Trigger{grouping.OnMany}, 10, time.Minute
	at := func(second int, n int64) grouping.Arrival {
		return grouping.Arrival{At: monday.Add(time.Duration(second) * time.Second), Severity: grouping.SeverityError, N: n}
	}
	arrived := []grouping.Arrival{at(0, 5), at(30, 4), at(61, 5), at(62, 1), at(70, 9), at(100, 9), at(130, 1), at(200, 1), at(210, 9), at(400, 30)}
	want := []int{62, 130, 210, 400}
	for portion := 1; portion <= len(arrived); portion++ {
		var burst grouping.Burst
		var told []int
		for some := range slices.Chunk(arrived, portion) {
			for _, at := range rule.Reach(time.Time{}, []grouping.Seen{{Environment: "prod", Arrived: some}}, &burst).Errors {
				told = append(told, int(at.Sub(monday).Seconds()))
			}
		}
		if !slices.Equal(told, want) {
			t.Errorf("by %d: told after %v seconds, want %v", portion, told, want)
		}
	}
}

// A rule that counts something else begins anew.
func TestBurstsBeginAnew(t *testing.T) {
	rule := grouping.DefaultAlertRule()
	rule.Triggers, rule.Count, rule.Per = []grouping.Trigger{grouping.OnMany}, 10, time.Minute
	came := func(second int, n int64) []grouping.Seen {
		return []grouping.Seen{{Arrived: []grouping.Arrival{{At: monday.Add(time.Duration(second) * time.Second), Severity: grouping.SeverityError, N: n}}}}
	}
	var burst grouping.Burst
	if told := rule.Reach(monday, came(0, 9), &burst).Errors; told != nil {
		t.Errorf("told at %v", told)
	}
	rule.Per = 7 * 24 * time.Hour
	since := monday.Add(time.Second)
	if told := rule.Reach(since, came(2, 9), &burst).Errors; told != nil {
		t.Errorf("told at %v", told)
	}
	if told := rule.Reach(since, came(3, 1), &burst).Errors; len(told) != 1 {
		t.Errorf("told at %v", told)
	}
}

// What is wrong with a rule is named.
func TestAlertRuleFaults(t *testing.T) {
	for field, change := range map[string]func(r *grouping.AlertRule){
		"":             func(*grouping.AlertRule) {},
		"name":         func(r *grouping.AlertRule) { r.Name = strings.Repeat("n", 81) },
		"triggers":     func(r *grouping.AlertRule) { r.Triggers = []grouping.Trigger{"new", "new"} },
		"new_from":     func(r *grouping.AlertRule) { r.NewFrom = 0 },
		"count":        func(r *grouping.AlertRule) { r.Count = 3 },
		"users":        func(r *grouping.AlertRule) { r.Triggers = append(r.Triggers, grouping.OnUsers) },
		"users+":       func(r *grouping.AlertRule) { r.Users = 3 },
		"users_per":    func(r *grouping.AlertRule) { r.Triggers, r.Users = append(r.Triggers, grouping.OnUsers), 3 },
		"per":          func(r *grouping.AlertRule) { r.Triggers, r.Count = append(r.Triggers, grouping.OnMany), 3 },
		"gap_seconds":  func(r *grouping.AlertRule) { r.Gap = time.Second },
		"muted_until":  func(r *grouping.AlertRule) { r.MutedUntil = monday.AddDate(0, 6, 0) },
		"environments": func(r *grouping.AlertRule) { r.Environments = make([]string, 21) },
		"q":            func(r *grouping.AlertRule) { r.Words = make([]string, 21) },
		"q+":           func(r *grouping.AlertRule) { r.Words = []string{"card", "is:resolved"} },
		"q++":          func(r *grouping.AlertRule) { r.Words = []string{"assigned:me"} },
		"q+++":         func(r *grouping.AlertRule) { r.Words = []string{"release:1", "release:2"} },
		"q++++": func(r *grouping.AlertRule) {
			r.Triggers, r.Count, r.Per, r.Words = []grouping.Trigger{grouping.OnMany}, 10, time.Hour, []string{"service:pay"}
		},
		"mail_members": func(r *grouping.AlertRule) { r.Members = slices.Repeat([]string{"mem_1"}, 21) },
		"webhooks":     func(r *grouping.AlertRule) { r.Webhooks = slices.Repeat([]string{"whk_1"}, 21) },
		"mail_roles":   func(r *grouping.AlertRule) { r.Roles = []string{"billing"} },

		"hours/time_zone": func(r *grouping.AlertRule) { r.Hours.Zone = "Local" },
		"hours/from":      func(r *grouping.AlertRule) { r.Hours.From = 24 * 60 },
		"hours/days":      func(r *grouping.AlertRule) { r.Hours.Days = []time.Weekday{1, 1} },
	} {
		rule := grouping.DefaultAlertRule()
		rule.Name, rule.Members = "Shop", []string{"mem_1"}
		change(&rule)
		err := rule.Check([]string{"owner"}, monday)
		invalid, _ := err.(grouping.Invalid) //nolint:errorlint // it is made there
		if invalid.Field != strings.TrimRight(field, "+") {
			t.Errorf("%s: %v", field, err)
		}
		if strings.Contains(invalid.Field, "_") && strings.HasPrefix(invalid.Detail, invalid.Field+" is ") && invalid.Field != "users_per" { // which a form lets choose
			t.Errorf("who fills in a form is told of a parameter: %v", err)
		}
	}
}

// A group that several triggers tell of is counted once.
func TestAlertCountsGroups(t *testing.T) {
	var a grouping.ErrorAlert
	var notices []grouping.Notice
	for _, group := range []string{"a", "a"} {
		notices = append(notices, grouping.Notice{Group: group, Trigger: grouping.OnNew, At: monday}, grouping.Notice{Group: group, Trigger: grouping.OnMany, At: monday})
	}
	a.Take(notices, monday)
	if n := a.Groups(); n != 1 {
		t.Errorf("%d groups wait, of 1", n)
	}
	_, lines := a.Send(monday, true, func(string) bool { return true })
	if want := []grouping.AlertLine{{Outcome: grouping.WasSent, Groups: 1, Group: "a"}}; !reflect.DeepEqual(lines, want) {
		t.Errorf("sent: %v", lines)
	}
}

// An alert's line is that of the list: levels and environments in it are the
// rule's, and me is who sets it.
func TestAlertsAskInTheListsLanguage(t *testing.T) {
	rule := grouping.DefaultAlertRule()
	rule.Name, rule.Environments = "Shop", []string{"prod"}
	line := `cart "no card" type:KeyError release:"my app" environment:prod environment:staging level:error assigned:me service:pay "is:open"`
	testenv.Must(t, rule.Ask(line, "mem_1"))
	if said := strings.Join(rule.Words, " "); said != `cart "no card" type:KeyError release:"my app" assigned:mem_1 service:pay "is:open"` {
		t.Errorf("it looks for %s", said)
	}
	if strings.Join(rule.Environments, " ") != "prod staging" || rule.Severities != grouping.SeverityError {
		t.Errorf("in %q, of %v", rule.Environments, rule.Severities)
	}
	testenv.Must(t, rule.Check(nil, monday))
	again := grouping.AlertRule{}
	if testenv.Must(t, again.Ask(strings.Join(rule.Words, " "), "")); !slices.Equal(again.Words, rule.Words) {
		t.Errorf("read again it looks for %q, not %q", again.Words, rule.Words)
	}
	if err := rule.Ask("level:loud", ""); err == nil {
		t.Error("a level that is none is taken")
	}
}

// A name is put into a rule's words only where it is read back as that name.
func TestRenamedRules(t *testing.T) {
	for name, want := range map[string]string{
		"Ada Lovelace": `assigned:"Ada Lovelace"`, "a:b": "assigned:a:b", `Ada "L" Lovelace`: "assigned:mem_1", "": "assigned:mem_1",
	} {
		rule := grouping.AlertRule{Words: []string{"cart", "assigned:mem_1"}}
		if got := rule.Renamed(func(string) string { return name }).Words; got[1] != want || got[0] != "cart" {
			t.Errorf("%q: %q", name, got)
		}
	}
}
