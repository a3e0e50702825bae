package ingest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Marks of evaluations: so many entries, or at least so many.
type mark struct {
	entries int64
	part    bool
}

// run evaluates an alert once a minute, and returns what was told and what was
// held back: F firing, O ok, U unevaluated, m muted, q quiet, - nothing.
func run(a *ingest.Alert, marks []mark) (told string) {
	for i, m := range marks {
		outcome := a.Evaluate(ingest.Evaluation{At: noon.Add(time.Duration(i) * time.Minute), Entries: m.entries, Part: m.part})
		switch {
		case outcome.Tell:
			told += map[ingest.AlertState]string{ingest.AlertFiring: "F", ingest.AlertOK: "O", ingest.AlertUnevaluated: "U"}[a.State]
		case outcome.Held != "":
			told += outcome.Held[:1]
		default:
			told += "-"
		}
	}
	return told
}

func counts(entries ...int64) (marks []mark) {
	for _, n := range entries {
		marks = append(marks, mark{entries: n})
	}
	return marks
}

// parts are counts of parts, so many times.
func parts(entries int64, times int) []mark { return slices.Repeat([]mark{{entries, true}}, times) }

func TestAlerts(t *testing.T) {
	more := ingest.AlertRule{Every: time.Minute, Window: 5 * time.Minute, Threshold: 10, Times: 1}
	absent := ingest.AlertRule{Every: time.Minute, Window: 5 * time.Minute, Fewer: true, Threshold: 1, Times: 1}
	with := func(rule ingest.AlertRule, change func(*ingest.AlertRule)) ingest.AlertRule {
		change(&rule)
		return rule
	}
	thrice := with(more, func(r *ingest.AlertRule) { r.Times = 3 })
	calm := with(more, func(r *ingest.AlertRule) { r.Quiet = 5 * time.Minute })
	for name, c := range map[string]struct {
		given ingest.AlertRule
		muted time.Duration
		when  []mark
		then  string
	}{
		"more, and no more":             {more, 0, counts(10, 11, 12, 10, 0), "-F-O-"},
		"nothing came, and came":        {absent, 0, counts(1, 0, 0, 1), "-F-O"},
		"thrice in a row":               {thrice, 0, counts(11, 11, 0, 11, 11, 11, 0), "-----FO"},
		"unknown breaks no row":         {thrice, 0, slices.Concat(counts(11, 11), parts(0, 1), counts(11)), "---F"},
		"not again so soon":             {calm, 0, counts(11, 0, 11, 0, 11, 11, 11), "FOq-qF-"},
		"over while it was quiet":       {calm, 0, counts(11, 0, 11, 0, 0, 0, 0, 11), "FOq----F"},
		"muted, and told when that end": {more, 3 * time.Minute, counts(11, 11, 11, 11, 0), "mmmFO"},
		"muted, and over before":        {more, 3 * time.Minute, counts(11, 11, 0, 0, 0), "mm---"},
		"a part is enough for more":     {more, 0, slices.Concat(parts(11, 1), parts(3, 2), counts(3)), "F--O"},
		"a part is enough for some":     {absent, 0, slices.Concat(counts(0), parts(1, 1)), "FO"},
		"absence needs the whole":       {absent, 0, parts(0, 15), "---------------"},
		"unknown for long":              {absent, 0, slices.Concat(parts(0, 16), counts(0, 1)), "---------------UFO"},
		"unknown while firing":          {more, 0, slices.Concat(counts(11), parts(0, 16), counts(11)), "F---------------UF"},
	} {
		t.Run(name, func(t *testing.T) {
			a := ingest.NewAlert(c.given, noon)
			if c.muted > 0 {
				a.MutedUntil = noon.Add(c.muted)
			}
			if told := run(&a, c.when); told != c.then {
				t.Errorf("told %s, want %s", told, c.then)
			}
		})
	}
}

// Random alerts do what a plain reading of their whole history says.
func TestAlertsAgreeWithTheirHistory(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 7))
	for range 500 {
		rule := ingest.AlertRule{Every: time.Minute, Window: time.Minute, Fewer: random.IntN(2) == 0, Threshold: 5, Times: 1 + random.IntN(3),
			Quiet: time.Duration(random.IntN(3)*4) * time.Minute}
		a := ingest.NewAlert(rule, noon)
		if random.IntN(3) == 0 {
			a.MutedUntil = noon.Add(time.Duration(random.IntN(30)) * time.Minute)
		}
		muted, marks := a.MutedUntil, []mark(nil)
		for range 60 {
			again := 1
			if random.IntN(12) == 0 {
				again = 20
			}
			marks = append(marks, slices.Repeat([]mark{{random.Int64N(10), again > 1 || random.IntN(4) == 0}}, again)...)
		}
		told, want := run(&a, marks), history(rule, muted, marks)
		if told != want {
			t.Fatalf("%+v, muted until %s, of %v:\ntold %s\nwant %s", rule, muted, marks, told, want)
		}
		if int(a.Facts) != len(told)-countOf(told, "-mq") {
			t.Fatalf("%d facts of %s", a.Facts, told)
		}
	}
}

func countOf(text, letters string) (n int) {
	for _, letter := range letters {
		for _, at := range text {
			if at == letter {
				n++
			}
		}
	}
	return n
}

// history is the naive model: it looks back at everything, each time.
func history(rule ingest.AlertRule, muted time.Time, marks []mark) (told string) {
	judge := func(m mark) string {
		met := m.entries > rule.Threshold
		if rule.Fewer {
			met = m.entries < rule.Threshold
		}
		if m.part && met == rule.Fewer {
			return "?"
		}
		return map[bool]string{true: "+", false: "-"}[met]
	}
	state, heard, fired := "O", "O", -1
	for i := range marks {
		known, blind := "", 0
		for j := 0; j <= i; j++ {
			if verdict := judge(marks[j]); verdict == "?" {
				blind++
			} else {
				known, blind = known+verdict, 0
			}
		}
		row := 0
		for j := len(known) - 1; j >= 0 && known[j] == '+'; j-- {
			row++
		}
		switch {
		case blind > 15:
			state = "U"
		case blind > 0:
		case row == 0:
			state = "O"
		case row >= rule.Times:
			state = "F"
		}
		at := noon.Add(time.Duration(i) * time.Minute)
		switch {
		case state == heard:
			told += "-"
		case at.Before(muted):
			told += "m"
		case state == "F" && fired >= 0 && time.Duration(i-fired)*time.Minute < rule.Quiet:
			told += "q"
		default:
			if heard = state; state == "F" {
				fired = i
			}
			told += state
		}
	}
	return told
}

func TestMissedEvaluationsAreNotCaughtUp(t *testing.T) {
	rule := ingest.AlertRule{Every: time.Minute}
	for after, want := range map[time.Duration]time.Duration{
		0: time.Minute, 59 * time.Second: time.Minute, time.Minute: 2 * time.Minute, 61*time.Minute + time.Second: 62 * time.Minute, -time.Second: time.Minute,
	} {
		if next := rule.Next(noon, noon.Add(after)); next != noon.Add(want) {
			t.Errorf("evaluated %s late, the next is due after %s, want %s", after, next.Sub(noon), want)
		}
	}
}

func TestRulesAreChecked(t *testing.T) {
	good := ingest.AlertRule{Every: time.Minute, Window: time.Minute, Threshold: 1, Times: 1, Roles: []string{"owner"}}
	for field, change := range map[string]func(*ingest.AlertRule){
		"":             func(*ingest.AlertRule) {},
		"every":        func(r *ingest.AlertRule) { r.Every = 59 * time.Second },
		"window":       func(r *ingest.AlertRule) { r.Window = 8 * 24 * time.Hour },
		"threshold":    func(r *ingest.AlertRule) { r.Fewer, r.Threshold = true, 0 },
		"times":        func(r *ingest.AlertRule) { r.Times = 0 },
		"quiet":        func(r *ingest.AlertRule) { r.Quiet = time.Second },
		"examples":     func(r *ingest.AlertRule) { r.Examples = 4 },
		"mail_roles":   func(r *ingest.AlertRule) { r.Roles = []string{"billing"} },
		"mail_members": func(r *ingest.AlertRule) { r.Members = make([]string, 21) },
	} {
		rule := good
		change(&rule)
		if got := faultOf(rule.Check([]string{"owner", "viewer"})); got != field {
			t.Errorf("the fault is in %q, want %q", got, field)
		}
	}
}

func faultOf(err error) string {
	var invalid ingest.Invalid
	if errors.As(err, &invalid) {
		return invalid.Field
	}
	if err != nil {
		return fmt.Sprint(err)
	}
	return ""
}

func TestSavedSearchesAreChecked(t *testing.T) {
	for field, change := range map[string]func(*ingest.SavedSearch){
		"":            func(*ingest.SavedSearch) {},
		"name":        func(s *ingest.SavedSearch) { s.Name = " " },
		"q":           func(s *ingest.SavedSearch) { s.Query = "level:loud" },
		"levels":      func(s *ingest.SavedSearch) { s.Levels = []string{"loud"} },
		"environment": func(s *ingest.SavedSearch) { s.Environment = "a\nb" },
		"last":        func(s *ingest.SavedSearch) { s.From = "2026-11-20T14:00:00Z" },
		"from":        func(s *ingest.SavedSearch) { s.Last, s.From = "", "yesterday" },
		"fields":      func(s *ingest.SavedSearch) { s.Fields = []string{"a b"} },
	} {
		s := ingest.SavedSearch{Name: "Checkout", Query: "timeout OR refused", Levels: []string{"error", "warn"}, Environment: "prod", Last: "1h"}
		change(&s)
		if got := faultOf(s.Check()); got != field {
			t.Errorf("the fault is in %q, want %q", got, field)
		}
	}
	s := ingest.SavedSearch{ID: "srch_1", Query: "timeout OR refused", Levels: []string{"error", "warn"}, Environment: "prod", Last: "1h", Project: "prj_1"}
	if whole := s.Whole(); whole != "(timeout OR refused) (level:error OR level:warn) environment:prod" {
		t.Errorf("as one query: %s", whole)
	}
	if whole := (&ingest.SavedSearch{Query: "timeout"}).Whole(); whole != "timeout" {
		t.Errorf("as one query: %s", whole)
	}
	if address := s.Address().Encode(); address != "environment=prod&last=1h&level=error&level=warn&project=prj_1&q=timeout+OR+refused&saved=srch_1" {
		t.Errorf("the address is %s", address)
	}
}
