package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/ruletext"
	"github.com/weirlog/weir/shared/ruletext/line"
)

func rulesOf(t testing.TB, text string) *Ruleset {
	t.Helper()
	set, err := ParseRules(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return set
}

// Each fault names its line, its character and the value, and a way out.
func TestParseRules(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "",
		"# nothing\n\n  \t\r\n":                 "",
		"drop level:debug environment:dev":      "",
		"drop if level:debug":                   "",
		"sample 10%":                            "",
		"sample 0.5% by trace_id if level:info": "",
		"redact email, card-number":             "",
		`redact /order [A-Z]+\/x/, ip in message,metadata.note if service:shop`: "",
		`set level warning if "deprecated" level:info after the charge`:         "",
		"drop service:probe after the charge\r\n":                               "",
		"drp level:debug":                           `Line 1, character 1: "drp" is not a rule.`,
		"\n  drop":                                  "Line 2, character 7: There is no condition after drop.",
		"drop after the charge":                     "Line 1, character 5: There is no condition after drop.",
		"drop level:loud":                           `Line 1, character 6: "level:loud" is not a level.`,
		"sample ten% if a":                          `Line 1, character 8: "ten%" is not a percentage.`,
		"sample 100%":                               `Line 1, character 8: "100%" is not a percentage.`,
		"sample 1e1%":                               `Line 1, character 8: "1e1%" is not a percentage.`,
		"sample 10% level:info":                     `Line 1, character 12: The rule goes on with "level:info".`,
		"sample 10% by level if x":                  `Line 1, character 15: "level" is not a field of the text.`,
		"sample 10% by a, b":                        "Line 1, character 18: The rule has too many fields.",
		"sample 10% if":                             "Line 1, character 14: There is no condition after if.",
		"redact":                                    `Line 1, character 7: "" is not a pattern.`,
		"redact email,":                             `Line 1, character 14: "" is not a pattern.`,
		"redact ü":                                  `Line 1, character 8: "ü" is not a pattern.`,
		"redact /a":                                 "Line 1, character 8: The expression is not closed.",
		"redact /a*/":                               "Line 1, character 9: The expression matches empty text.",
		"redact /ü(?=b)/":                           "Line 1, character 10: The expression is wrong: invalid or unsupported Perl syntax: \"(?=\".",
		"redact /(a{100}){2}/":                      "Line 1, character 9: The expressions are too large: with this one they have 206 steps.",
		"redact email in":                           `Line 1, character 16: "" is not a field of the text.`,
		"redact email in timestamp":                 "Line 1, character 17: timestamp can't be redacted.",
		"redact email in a, received_at":            "Line 1, character 20: received_at can't be redacted.",
		"redact email in level":                     "Line 1, character 17: level can't be redacted.",
		"redact email in metadata.timestamp":        "",
		"redact email message":                      `Line 1, character 14: The rule goes on with "message".`,
		"set level loud if a":                       `Line 1, character 11: "loud" is not a level.`,
		"set level warn":                            "Line 1, character 15: The rule does not say of which entries.",
		"set message x":                             "Line 1, character 5: Only the level can be set.",
		"# a\x00":                                   "Line 1, character 4: This character is not text.",
		"drop a\x00":                                "Line 1, character 7: This character is not text.",
		strings.Repeat("drop a\n", line.MaxRules):   "",
		strings.Repeat("drop a\n", line.MaxRules+1): "Line 51, character 1: There are more than 50 rules.",
		strings.Repeat("redact /a/\n", 6):           "Line 6, character 9: There are more than 5 expressions.",
		"redact " + strings.Repeat("ip,", 11):       "Line 1, character 38: There are more than 10 patterns.",
		strings.Repeat("#", line.MaxText+1):         "The rules have 16385 bytes.",
	} {
		_, err := ParseRules(text)
		var fault Invalid
		switch {
		case err == nil && want != "":
			t.Errorf("%q: no fault, want %s", text, want)
		case err != nil && (!errors.As(err, &fault) || fault.Detail != want || fault.Fix == "" || fault.Field != "rules"):
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

const anEntry = `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":%s,"metadata":{%s},"environment":"dev"}`

func entryWith(message, metadata string) string {
	quoted, _ := json.Marshal(message)
	return fmt.Sprintf(anEntry, quoted, metadata)
}

// judged is what rules make of an entry, and what it is charged.
func judged(t testing.TB, rules, entry string) (string, int64) {
	t.Helper()
	r := Ruler{seeker: seeker{late: never}}
	kept, charged := r.judge(rulesOf(t, rules), []byte(entry), "prod")
	return string(kept), charged
}

func TestRulesApplyInOrder(t *testing.T) {
	entry := entryWith("mail a@example.com", `"trace_id":"t1","n":1.50`)
	redacted := entryWith("mail [email]", `"trace_id":"t1","n":1.50`)
	size, less := int64(len(entry)), int64(len(redacted))
	for _, test := range []struct {
		rules, want string
		charged     int64
	}{
		{"", entry, size},
		{"drop level:debug", entry, size},
		{"drop level:info environment:dev", "", 0},
		{"drop environment:prod", entry, size},
		{"drop level:info after the charge", "", size},
		{"redact email", redacted, less},
		{"redact email after the charge", redacted, size},
		{"drop level:info after  the\tcharge ", "", size},
		{"drop \"after the charge\"", entry, size},
		{"redact email in metadata", entry, size},
		{"redact email in message if level:error", entry, size},
		{"redact email\ndrop example", redacted, less},
		{"drop example\nredact email", "", 0},
		{"drop email after the charge\nredact email", "", less},
		{"set level error if mail\ndrop level:info", strings.Replace(entry, "info", "error", 1), size + 1},
		{"set level error if mail\nset level warn if level:error\nset level fatal if level:warn", strings.Replace(entry, "info", "fatal", 1), size + 1},
		{"set level warning if mail\nset level info if level:warn", entry, size},
		{"redact /[0-9]+[.][0-9]+/ in n", strings.Replace(entry, "1.50", `"**"`, 1), size},
		{"sample 99.9999% by trace_id", entry, size},
		{"sample 0.0001% by trace_id", "", 0},
	} {
		if got, charged := judged(t, test.rules, entry); got != test.want || charged != test.charged {
			t.Errorf("%s\ngot  %d %s\nwant %d %s", test.rules, charged, got, test.charged, test.want)
		}
	}
}

// Redactions find what JSON has escaped, and names of fields, and keep all
// other bytes.
func TestRedact(t *testing.T) {
	const head, tail = `{"timestamp":"2026-01-31T12:00:00Z","level":"info",`, `}`
	for _, test := range []struct{ rules, entry, want string }{
		{"redact email", `"message":"{\"to\":\"\u0061@example.com\"}"`, `"message":"{\"to\":\"[email]\"}"`},
		{"redact email", `"message":"\ud83d\ude00 a@b.co \t\/"`, `"message":"\ud83d\ude00 *** \t\/"`},
		{"redact email", `"message":"m","metadata":{"a@example.com":{"x":[1,"b@example.com",null,true]}}`, `"message":"m","metadata":{"[email]":{"x":[1,"[email]",null,true]}}`},
		{"redact email", `"message":"m","error":{"message":"a@example.com","stack_trace":["at a@example.com","b"],"context":{"u":"a@example.com"}},"x@example.com":"y@example.com"`,
			`"message":"m","error":{"message":"[email]","stack_trace":["at [email]","b"],"context":{"u":"[email]"}},"[email]":"[email]"`},
		{"redact card-number", `"message":"4111 1111 1111 1111","metadata":{"n":4111111111111111,"m":41111111111111110000}`,
			`"message":"[card-number]","metadata":{"n":"[card-number]","m":41111111111111110000}`},
		{"redact password", `"message":"password=hunter2 x","metadata":{"db":{"Pass-Word":"a","pin":"1"},"apiKey":12,"token":{"a":["long enough a value",true,null,123456]}}`,
			`"message":"password=*** x","metadata":{"db":{"Pass-Word":"*","pin":"1"},"apiKey":0,"token":{"a":["[password]",true,null,"***"]}}`},
		{"redact password in metadata.db.password", `"message":"password=hunter2","metadata":{"db":{"password":"hunter22222"},"password":"y"}`,
			`"message":"password=hunter2","metadata":{"db":{"password":"[password]"},"password":"y"}`},
		{"redact password in metadata.db.password.value, metadata.x.token.a", `"message":"m","metadata":{"db":{"password":{"value":"hunter22222","x":"y"}},"x":{"token":{"a":"long enough!"}}}`,
			`"message":"m","metadata":{"db":{"password":{"value":"[password]","x":"y"}},"x":{"token":{"a":"[password]"}}}`},
		{"redact /type|note/ in error", `"message":"m","error":{"type":"a type","message":"x","context":{"type":1},"note":"x"},"metadata":{"error":{"type":"a type"}}`,
			`"message":"m","error":{"type":"a ***","message":"x","context":{"***":1},"***":"x"},"metadata":{"error":{"***":"a ***"}}`},
		{"redact email", `"message":"m","error":{"message":"x","bob@example.com":1},"bob@example.com":1,"eve@example.com":2`,
			`"message":"m","error":{"message":"x","[email]":1},"[email]":1,"[email]":2`},
		{"redact ip, /user [0-9]+/ in message, tags", `"message":"user 10 at 10.0.0.1","metadata":{"tags":["10.0.0.2",["10.0.0.3"]],"z":"10.0.0.4"}`,
			`"message":"*** at [ip]","metadata":{"tags":["[ip]",["[ip]"]],"z":"10.0.0.4"}`},
		{"redact /./", `"message":"` + strings.Repeat("a", 40) + `","metadata":{"x":"` + strings.Repeat("b", 60) + `"}`,
			`"message":"` + strings.Repeat("*", 40) + `","metadata":{"*":"[redacted]"}`},
		{"redact /é+x/", `"message":"\u00e9\u00e9x é"`, `"message":"*** é"`},
	} {
		entry, want := head+test.entry+tail, head+test.want+tail
		if got, _ := judged(t, test.rules, entry); got != want {
			t.Errorf("%s\nof   %s\ngot  %s\nwant %s", test.rules, entry, got, want)
		}
		if !json.Valid([]byte(want)) {
			t.Errorf("%s is no JSON", want)
		}
	}
}

// What an expression costs a text has a bound: with a star that looks to the
// end of the text, each find reads all of it.
func TestLongTextsAreRedactedWhole(t *testing.T) {
	rules := "redact /a((" + strings.Repeat(".?", 56) + ")*b)?/"
	for size, want := range map[int]string{
		10 << 10: strings.Repeat("*x", 3) + strings.Repeat("y", 10<<10-6), 100 << 10: "[redacted]",
	} {
		text := "axaxax" + strings.Repeat("y", size-6)
		if got, _ := judged(t, rules, entryWith(text, "")); got != entryWith(want, "") {
			t.Errorf("%d bytes became %.100s", size, got)
		}
	}
}

// Time may be up inside an entry.
func TestRulesGiveUp(t *testing.T) {
	looks := 0
	late := func() bool {
		looks++
		return looks > 2
	}
	body := `{"logs":[` + entryWith("order 1", `"a":"order 2","b":"order 3","c":"order 4"`) + `]}`
	batch, err := NewParser(DefaultLimits()).Parse([]byte(body))
	if err != nil || batch.Rejected > 0 {
		t.Fatal(err, batch.Faults)
	}
	if _, done := new(Ruler).Apply(rulesOf(t, "redact /order/"), batch, "", late); done || looks != 3 {
		t.Errorf("done is %t after %d looks at the time", done, looks)
	}
	looks = 0
	if p := NewPreviewer(rulesOf(t, "redact /order/"), late); p.Add(&Found{Stored: Stored{Text: []byte(entryWith("order 1", `"a":"order 2","b":"order 3"`))}}) || p.Preview().Entries != 0 {
		t.Errorf("the preview counts %d entries", p.Preview().Entries)
	}
}

// Entries of one trace stay or go together, and as many stay as is asked for.
func TestSample(t *testing.T) {
	kept := 0
	for trace := range 10_000 {
		first, _ := judged(t, "sample 10% by trace_id", entryWith("first", fmt.Sprintf(`"trace_id":"%032x"`, trace)))
		other, _ := judged(t, "sample 10% by trace_id if level:info", entryWith("other", fmt.Sprintf(`"x":null,"trace_id":"\u0030%031x"`, trace)))
		if (first == "") != (other == "") {
			t.Fatalf("trace %d is torn apart", trace)
		}
		if first != "" {
			kept++
		}
	}
	if kept < 900 || kept > 1100 {
		t.Errorf("%d of 10,000 traces are kept", kept)
	}
}

// What the page for users says is so.
func TestPageOfRules(t *testing.T) {
	text, err := os.ReadFile("docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	_, block, _ := strings.Cut(page, "```rules\n")
	block, _, _ = strings.Cut(block, "```")
	if set := rulesOf(t, block); len(set.Rules()) != 7 {
		t.Errorf("the example has %d rules", len(set.Rules()))
	}
	var fault Invalid
	if _, err := ParseRules("drop level:loud"); !errors.As(err, &fault) {
		t.Fatal(err)
	}
	says := []string{
		fmt.Sprintf("| %d, of %d,%d bytes |", line.MaxRules, line.MaxText/1000, line.MaxText%1000),
		fmt.Sprintf("patterns, and fields, of a rule | %d |", maxRulePatterns),
		fmt.Sprintf("| %d, of %d bytes and %d steps in all", maxExpressions, maxExpression, maxSteps), fmt.Sprintf("more than %d times", maxFinds),
		fmt.Sprintf("the newest %d", ruletext.MaxVersions), strings.Join(secretNames[:len(secretNames)-1], ", ") + " or " + secretNames[len(secretNames)-1],
		strings.Join(secretEndings[:len(secretEndings)-1], ", ") + " or " + secretEndings[len(secretEndings)-1], strings.ReplaceAll(fault.Detail, `"`, `\"`),
	}
	for _, name := range RedactionPatterns() {
		says = append(says, "| `"+name+"` |")
	}
	for _, sentence := range says {
		if !strings.Contains(page, sentence) {
			t.Errorf("docs/rules.md lacks %q", sentence)
		}
	}
}
