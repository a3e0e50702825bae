package grouping

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/ruletext/line"
)

func mustRules(t testing.TB, lines ...string) *Ruleset {
	t.Helper()
	set, err := ParseRules(strings.Join(lines, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A fault names the line and the character, and the way out.
func TestRuleFaults(t *testing.T) {
	for text, want := range map[string]string{
		"# fine\nnonsense a:b":                 `Line 2, character 1: "nonsense" is not a rule.`,
		"own":                                  "Line 1, character 4: The rule has no condition about frames.",
		"own type:X":                           "Line 1, character 11: The rule has no condition about frames.",
		"own function:":                        `Line 1, character 14: There is nothing after "function:".`,
		"ignore -function:a":                   "Line 1, character 19: The rule only says what a frame is not.",
		"ignore fun:a":                         `Line 1, character 8: "fun" is not a field.`,
		"ignore function":                      `Line 1, character 8: "function" is not a condition.`,
		`same type:X`:                          "Line 1, character 12: The rule has no condition.",
		`same "" type:X`:                       "Line 1, character 6: There is no name.",
		`same "é type:X`:                       "Line 1, character 6: The quote is not closed.",
		`same "a" type:X metadata..b:1`:        `Line 1, character 17: ".b" is not a path in metadata.`,
		"group type":                           "Line 1, character 7: The word by must follow group.",
		"group by":                             `Line 1, character 9: "" is not a field.`,
		"group by type message":                "Line 1, character 15: The list of parts ends here.",
		"group by type, size":                  `Line 1, character 16: "size" is not a field.`,
		"group by type where":                  "Line 1, character 20: There is no condition after where.",
		"scrub names":                          `Line 1, character 7: "names" is not a pattern to scrub.`,
		"scrub /a(b/":                          "Line 1, character 8: The expression is wrong: missing closing ): \"a(b\".",
		`scrub /a(?=b)/`:                       "Line 1, character 9: The expression is wrong: invalid or unsupported Perl syntax: \"(?=\".",
		"scrub /ab":                            "Line 1, character 7: The expression is not closed.",
		"scrub //":                             "Line 1, character 8: The expression has 0 bytes.",
		"scrub /a*/":                           "Line 1, character 8: The expression matches empty text.",
		"scrub /(a{90}){9}/":                   "Line 1, character 8: The expressions are too large",
		"scrub email with x":                   "Line 1, character 13: The rule should end here.",
		"scrub email as":                       "Line 1, character 15: There is no text.",
		"scrub email as a b":                   "Line 1, character 18: The rule should end here.",
		"own path:a\x00b":                      "Line 1, character 11: This character is not text.",
		"own path:" + strings.Repeat("a", 201): "Line 1, character 10: The text is longer than 200 bytes.",
		"own" + strings.Repeat(" path:a", 11):  "Line 1, character 75: The rule has more than 10 conditions.",
		strings.Repeat("own path:a\n", 51):     "Line 51, character 1: There are more than 50 rules.",
		strings.Repeat("#", line.MaxText+1):    "The rules have 16385 bytes.",
		"group by " + strings.Repeat("type,", 10) + "a":         "Line 1, character 60: There are more than 10 parts.",
		"own path:a*b*c*d*e*f*":                                 "Line 1, character 10: There are more than 5 stars.",
		strings.Repeat("own path:a path:b path:c path:d\n", 40): "Line 38, character 1: The rules have more than 150 conditions.",
		"group by metadata.a,metadata.b,metadata.c,metadata.d,metadata.e,metadata.f\ngroup by metadata.g,metadata.h,metadata.i,metadata.j,metadata.k": "Line 2, character 1: The rules ask for more than 10",
	} {
		_, err := ParseRules(text)
		var invalid Invalid
		if !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Detail, want) || invalid.Fix == "" || invalid.Field != "rules" {
			t.Errorf("%.80q: %v", text, err)
		}
	}
}

func TestGlobs(t *testing.T) {
	for _, of := range []struct {
		glob, text string
		want       bool
	}{
		{"abc", "abc", true}, {"abc", "abcd", false}, {"a*", "abc", true}, {"*c", "abc", true}, {"a*c", "abc", true}, {"a*b*c", "aXbYc", true},
		{"a*b*c", "abc", true}, {"ab*ba", "aba", false}, {"*b*", "abc", true}, {"*x*", "abc", false}, {"*", "", true}, {`""`, "", true}, {`""`, "a", false},
		{`"a*b"`, "a*b", true}, {`"a*b"`, "axb", false}, {`a\*b`, "a*b", true}, {`*"card declined"*`, "the card declined it", true}, {`"say \"hi\""`, `say "hi"`, true},
	} {
		set := mustRules(t, "ignore function:"+of.glob)
		if got := set.rules[0].in[0].glob.matches(of.text); got != of.want {
			t.Errorf("%s and %q: %v", of.glob, of.text, got)
		}
	}
	for _, of := range []struct {
		glob, path string
		want       bool
	}{
		{"src/*", "/home/ci/src/a.js", true}, {"src/*", `C:\ci\src\a.cs`, true}, {"/src/*", "/home/src/a", false}, {"a.js", "/b/a.js", true}, {"a.js", "/b/aa.js", false},
	} {
		if got := mustRules(t, "own path:"+of.glob).rules[0].in[0].glob.matchesPath(of.path); got != of.want {
			t.Errorf("%s and %s: %v", of.glob, of.path, got)
		}
	}
}

const ruledTrace = `com.acme.Declined: card of bob@example.com was declined
	at com.acme.lib.Assert.ok(Assert.java:7)
	at com.acme.pay.Gateway.charge(Gateway.java:41)
	at com.acme.pay.Payments.pay(Payments.java:12)
	at com.acme.web.Checkout.post(Checkout.java:3)
	at com.acme.web.Router.route(Router.java:9)`

func ruled(set *Ruleset, context *EntryContext, of string) Error {
	e := readError(of)
	e.Learned.Rules, e.Context = set, context
	return e
}

// Rules change what counts of an error, and why says which did.
func TestRulesDecide(t *testing.T) {
	other := strings.Replace(ruledTrace, "Router.route", "Queue.run", 1) // a fifth frame, which does not count
	mail := strings.Replace(ruledTrace, "bob@example.com", "nobody", 1)
	pay := &EntryContext{Service: "pay", Environment: "prod", Metadata: map[string]string{"tenant": "a"}}
	for _, of := range []struct {
		name, rules string
		a, b        Error
		same        bool
		says        string
	}{
		{"none", "", ruled(nil, nil, ruledTrace), ruled(nil, nil, other), true, ""},
		{"an ignored frame", "ignore function:ok", Error{}, Error{}, false, "ignore function:ok"},
		{"an ignored frame, by what is shown", "ignore function:com.acme.lib.*.ok", Error{}, Error{}, false, "ignore function:com.acme.lib.*.ok"},
		{"the first line decides", "own path:Assert.java\nignore function:ok", Error{}, Error{}, true, "own path:Assert.java"},
		{"of other errors", "ignore function:ok type:*Other", Error{}, Error{}, true, ""},
		{"of other services", "ignore function:ok service:web", Error{}, Error{}, true, ""},
		{"of this service", "ignore function:ok service:p*", Error{}, Error{}, false, "ignore function:ok service:p*"},
		{"of all services but one", "ignore function:ok -service:pay", Error{}, Error{}, true, ""},
		{"a library", "library module:com.acme.lib.*", Error{}, Error{}, false, "library module:com.acme.lib.*"},
	} {
		var g Grouper
		set := mustRules(t, of.rules)
		one, two := g.Fingerprint(ruled(set, pay, ruledTrace)).Deciding(), g.Fingerprint(ruled(set, pay, other)).Deciding()
		if (one == two) != of.same {
			t.Errorf("%s: %v %v", of.name, one, two)
		}
		says := ""
		for _, p := range g.Fingerprint(ruled(set, pay, ruledTrace)).Explain().Parts {
			if p.Kind == partRule {
				says = p.Value
			}
		}
		if says != of.says {
			t.Errorf("%s: says %q", of.name, says)
		}
	}
	for rules, same := range map[string]bool{
		"scrub email as nobody":                                       true,
		"scrub ip":                                                    false,
		`scrub /[a-z]+@example\.com/ as nobody`:                       true,
		`same "All" type:*Declined`:                                   true,
		`same "All" type:*Declined message:*nobody*`:                  false,
		`same "All" type:*Declined -message:*nobody*`:                 false,
		`same "All" function:pay path:Payments.java`:                  true,
		`same "All" function:nothing`:                                 false,
		`same "All" -function:nothing`:                                true,
		`same "All" metadata.tenant:a`:                                true,
		`same "All" metadata.tenant:b`:                                false,
		`group by type, function where environment:prod`:              true,
		`group by default`:                                            false,
		`group by type, message`:                                      false,
		`group by "x", service, module, path, environment`:            true,
		"same A message:*nobody*\ngroup by type":                      false,
		"scrub email as nobody\ngroup by message, metadata.tenant":    true,
		"group by type where -message:*nobody* -metadata.tenant:none": false,
	} {
		var g Grouper
		set := mustRules(t, rules)
		if got := g.Fingerprint(ruled(set, pay, ruledTrace)).Deciding() == g.Fingerprint(ruled(set, pay, mail)).Deciding(); got != same {
			t.Errorf("%q: %v", rules, got)
		}
	}
}

// A frame says which rule judged it, and a message is scrubbed wherever it is kept.
func TestRulesDescribe(t *testing.T) {
	var g Grouper
	set := mustRules(t, "# people", "ignore function:ok", `same "Card declined" type:*Declined`, "scrub email", "own module:none")
	f := g.Fingerprint(ruled(set, nil, ruledTrace))
	d, why := f.Describe(), f.Explain()
	if d.Title != "Card declined" || d.Culprit != "com.acme.pay.Gateway.charge" || why.Scope != ScopeRule || why.Rule != RuleSame {
		t.Errorf("%q %q %+v", d.Title, d.Culprit, why)
	}
	frames := d.Exceptions[0].Frames
	if set.Says(frames[0].Rule) != "ignore function:ok" || frames[0].Library != trace.ByRule || frames[1].Rule != 0 || !frames[1].InApp {
		t.Errorf("%+v", frames[:2])
	}
	if m := d.Exceptions[0].Message; m != "card of <email> was declined" {
		t.Errorf("kept %q", m)
	}
	if len(f.Joining()) != 1 || f.Former() != nil || f.Deciding() != f.Strictest || len(f.All()) != 2 {
		t.Errorf("%v %v", f.Joining(), f.Former())
	}
	if set.Says(0)+set.Says(9)+(*Ruleset)(nil).Says(1) != "" || !(*Ruleset)(nil).Empty() || set.Len() != 4 {
		t.Error("says what it does not have")
	}
}

// What somebody split off stays so, whatever rules there are.
func TestSplitsOutlastRules(t *testing.T) {
	var g Grouper
	want := g.Fingerprint(ruled(nil, nil, ruledTrace)).splitHashes(ruled(nil, nil, ruledTrace))
	e := ruled(mustRules(t, "ignore function:ok", `same A type:*`, "scrub email"), nil, ruledTrace)
	if got := g.Fingerprint(e).splitHashes(e); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// However long an error is, a bounded part of it is scrubbed, and nothing else is kept.
func TestScrubIsBounded(t *testing.T) {
	set := mustRules(t, "scrub email")
	long := strings.Repeat("bob@example.com ", 9000)
	if got := set.Scrub(long); len(got) > maxScrubbed || strings.Contains(got, "bob@example.com") {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-40:])
	}
	chain := "E: " + long
	for range 30 {
		chain += "\n\tat com.acme.A.b(A.java:1)\nCaused by: F: " + long
	}
	var g Grouper
	sum := 0
	for _, x := range g.Fingerprint(ruled(set, nil, chain)).Describe().Exceptions {
		sum += len(x.Message)
		if strings.Contains(x.Message, "bob@example.com") {
			t.Fatalf("kept %q", x.Message)
		}
	}
	if sum > maxScrubs {
		t.Errorf("%d bytes are kept", sum)
	}
}

// The examples of README.md do what they say.
func TestReadmeRules(t *testing.T) {
	_, rest, _ := strings.Cut(mustRead("README.md"), "```rules\n=== rules\n")
	block, _, _ := strings.Cut(rest, "```")
	lines, examples, _ := strings.Cut(block, "=== ")
	set := mustRules(t, lines)
	var g Grouper
	deciding := func(e Error) ScopedHash {
		e.Learned.Rules = set
		return g.Fingerprint(e).Deciding()
	}
	tried := 0
	for _, v := range parseVariants("=== " + examples) {
		base := deciding(v.base)
		for name, e := range v.same {
			if tried++; deciding(e) != base {
				t.Errorf("%s is another group", name)
			}
		}
		for name, e := range v.other {
			if tried++; deciding(e) == base {
				t.Errorf("%s is the same group", name)
			}
		}
	}
	if tried != 3 {
		t.Errorf("%d examples", tried)
	}
}

// Errors are read by the version that held when they were accepted, and
// those from before all that is kept by the oldest.
func TestRuleHistoryAt(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 21, 12, minute, 0, 0, time.UTC) }
	first := RuleHistory{{Version: 1, Since: at(10)}, {Version: 2, Since: at(20)}}
	kept := RuleHistory{{Version: 7, Since: at(10)}, {Version: 8, Since: at(20)}}
	for _, c := range []struct {
		history RuleHistory
		minute  int
		want    int64
	}{{nil, 0, 0}, {first, 9, 0}, {first, 10, 1}, {first, 19, 1}, {first, 20, 2}, {kept, 9, 7}, {kept, 20, 8}} {
		if got := c.history.At(at(c.minute)); got != c.want {
			t.Errorf("%+v at minute %d: %d, want %d", c.history, c.minute, got, c.want)
		}
	}
}
