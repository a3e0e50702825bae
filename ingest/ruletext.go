package ingest

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/contract/entryfield"
)

// ParseRules reads the rules of a project, one a line:
//
//	drop level:debug environment:dev
//	sample 10% by trace_id if level:info
//	redact email, card-number
//	redact /order [A-Z]+/ in message, metadata.note if service:shop
//	set level warn if "deprecated" level:info
//	drop service:probe after the charge
//
// Lines that begin with # are for people. A condition is a query. The error is
// an Invalid that names line, character and a way out.
func ParseRules(text string) (*Ruleset, error) {
	if len(text) > MaxRulesText {
		return nil, Invalid{"rules", fmt.Sprintf("The rules have %d bytes.", len(text)), fmt.Sprintf("Use at most %d.", MaxRulesText)}
	}
	set := &Ruleset{Text: text}
	var after []IngestRule
	for n, line := range strings.Split(text, "\n") {
		p := ruleLine{set: set, text: strings.TrimRightFunc(line, unicode.IsSpace)}
		if p.blanks(); (p.rest() == "" || p.text[p.at] == '#') && p.isText() {
			continue
		}
		rule := IngestRule{Line: n + 1, Text: strings.TrimSpace(line)}
		if len(set.rules)+len(after) == MaxRules {
			p.fail(p.at, fmt.Sprintf("There are more than %d rules.", MaxRules), "Join conditions by OR, or remove some.")
		} else {
			p.rule(&rule)
		}
		if p.err != nil {
			return nil, Invalid{"rules", fmt.Sprintf("Line %d, character %d: %s", n+1, p.err.At, p.err.Detail), p.err.Fix}
		}
		if rule.AfterCharge {
			after = append(after, rule)
		} else {
			set.rules = append(set.rules, rule)
		}
	}
	set.afterCharge = len(set.rules)
	set.rules = append(set.rules, after...)
	return set, nil
}

// A ruleLine is a line that is read. It keeps its first fault.
type ruleLine struct {
	set  *Ruleset
	text string
	at   int
	err  *QueryError
}

func (p *ruleLine) fail(at int, detail, fix string) {
	if p.err == nil {
		p.err = &QueryError{At: utf8.RuneCountInString(p.text[:min(at, len(p.text))]) + 1, Detail: detail, Fix: fix}
	}
}

func (p *ruleLine) rest() string { return p.text[p.at:] }

func (p *ruleLine) blanks() {
	p.at = len(p.text) - len(strings.TrimLeftFunc(p.rest(), unicode.IsSpace))
}

// word reads up to a blank or a comma.
func (p *ruleLine) word() string {
	p.blanks()
	word := p.rest()
	if end := strings.IndexFunc(word, func(r rune) bool { return unicode.IsSpace(r) || r == ',' }); end >= 0 {
		word = word[:end]
	}
	p.at += len(word)
	return word
}

// skip reads a word if it is the next one.
func (p *ruleLine) skip(word string) bool {
	from := p.at
	if p.word() == word {
		return true
	}
	p.at = from
	return false
}

func (p *ruleLine) isText() bool {
	return utf8.ValidString(p.text) && !strings.ContainsFunc(p.text, func(c rune) bool { return c < ' ' && c != '\t' })
}

// cutAfterTheCharge cuts off the words that end a rule that changes what is
// kept, and not what is charged.
func cutAfterTheCharge(text string) (before string, is bool) {
	before = text
	for _, word := range []string{"charge", "the", "after"} {
		rest, ends := strings.CutSuffix(before, word)
		if before = strings.TrimRightFunc(rest, unicode.IsSpace); !ends || before == rest {
			return text, false
		}
	}
	return before, true
}

func (p *ruleLine) rule(r *IngestRule) {
	begins := p.at
	p.text, r.AfterCharge = cutAfterTheCharge(p.text)
	if !p.isText() {
		p.fail(begins, "The line has a character that is no text.", "Remove it.")
		return
	}
	switch kind := p.word(); kind {
	case "drop":
		r.Kind = RuleDrop
		p.skip("if")
		p.condition(r, "drop", "drop level:debug")
	case "sample":
		r.Kind = RuleSample
		p.sample(r)
	case "redact":
		r.Kind = RuleRedact
		p.redact(r)
	case "set":
		r.Kind = RuleSetLevel
		p.setLevel(r)
	default:
		p.fail(begins, fmt.Sprintf("%.40q is no rule.", kind), "Begin the line with drop, sample, redact or set level; with # for a comment.")
	}
}

// condition reads the query at the end of a rule.
func (p *ruleLine) condition(r *IngestRule, behind, example string) {
	p.blanks()
	if p.rest() == "" {
		p.fail(len(p.text), fmt.Sprintf("There is no condition behind %s.", behind), fmt.Sprintf("Name entries by a query: %s.", example))
		return
	}
	var fault *QueryError
	var err error
	if r.when, err = ParseQuery(p.rest()); errors.As(err, &fault) {
		fault.At += utf8.RuneCountInString(p.text[:p.at])
		p.err = fault
		return
	}
	eachCondition(r.when.root, func(c condition) {
		_, asks := c.(inEnvironment)
		p.set.byEnvironment = p.set.byEnvironment || asks
	})
}

// mayEnd reads the condition of a rule that needs none.
func (p *ruleLine) mayEnd(r *IngestRule, fix string) {
	switch p.blanks(); {
	case p.err != nil || p.rest() == "":
	case p.skip("if"):
		p.condition(r, "if", "if level:info")
	default:
		p.fail(p.at, fmt.Sprintf("The rule goes on with %.40q.", p.rest()), fix)
	}
}

func (p *ruleLine) sample(r *IngestRule) {
	p.blanks()
	at := p.at
	text, is := strings.CutSuffix(p.word(), "%")
	percent, err := strconv.ParseFloat(text, 64)
	if !is || err != nil || !(percent > 0 && percent < 100) || strings.Trim(text, "0123456789.") != "" {
		p.fail(at, fmt.Sprintf("%.40q is not a percentage.", p.text[at:p.at]),
			"Write how many are kept, more than 0% and less than 100%: sample 10% by trace_id. To keep none, use drop.")
		return
	}
	if r.rate = percent / 100; p.skip("by") {
		r.paths = p.paths(r.Kind, 1)
	}
	p.mayEnd(r, "Write by and a field, if and a query, or nothing: sample 10% by trace_id if level:info.")
}

// paths reads fields up to a number of them, with commas between.
func (p *ruleLine) paths(kind RuleKind, most int) (paths []jsonPath) {
	for n := 1; p.err == nil; n++ {
		p.blanks()
		at := p.at
		name := p.word()
		field, err := ParseField(name)
		switch {
		case n > most:
			p.fail(at, "The rule has too many fields.", fmt.Sprintf("Name at most %d.", most))
		case kind == RuleRedact && isFixed(name):
			p.fail(at, fmt.Sprintf("%s can't be redacted.", name), fmt.Sprintf("Name other fields; metadata.%s for one of that name in metadata.", name))
		case err != nil || len(field.paths) == 0:
			p.fail(at, fmt.Sprintf("%.40q is no field of the text.", name), "Name one, such as message, error.message or metadata.user.id.")
		}
		paths = append(paths, field.paths...)
		if !p.comma() {
			break
		}
	}
	return paths
}

// isFixed reports whether a field has to stay what it is.
func isFixed(name string) bool {
	return name == entryfield.Timestamp || name == entryfield.Level || name == entryfield.Environment || name == "received_at"
}

func (p *ruleLine) comma() bool {
	p.blanks()
	if !strings.HasPrefix(p.rest(), ",") {
		return false
	}
	p.at++
	return true
}

func (p *ruleLine) redact(r *IngestRule) {
	for n := 0; p.err == nil; n++ {
		if p.blanks(); n == maxRulePatterns {
			p.fail(p.at, fmt.Sprintf("There are more than %d patterns.", maxRulePatterns), "Write a second rule.")
		} else if strings.HasPrefix(p.rest(), "/") {
			p.expression(r)
		} else {
			p.pattern(r)
		}
		if !p.comma() {
			break
		}
	}
	if p.err == nil && p.skip("in") {
		r.paths = p.paths(r.Kind, maxRulePaths)
	}
	p.mayEnd(r, "Write a comma and another pattern, in and fields, if and a query, or nothing: redact email in message if service:shop.")
}

func (p *ruleLine) pattern(r *IngestRule) {
	at := p.at
	name := p.word()
	redactors, is := secrets[name]
	if !is {
		p.fail(at, fmt.Sprintf("%.40q is no pattern.", name),
			"Use "+strings.Join(RedactionPatterns(), ", ")+", or an expression between slashes: /order [0-9]+/.")
		return
	}
	r.named = r.named || name == passwordPattern
	for _, of := range redactors {
		of.label = "[" + name + "]"
		r.what = append(r.what, of)
	}
}

// expression reads /…/, an expression of RE2.
func (p *ruleLine) expression(r *IngestRule) {
	at := p.at + 1
	end := at
	for end < len(p.text) && p.text[end] != '/' {
		if p.text[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(p.text) {
		p.fail(p.at, "The expression is not closed.", `Add / at its end; \/ is a slash inside.`)
		return
	}
	written := p.text[at:end]
	p.at = end + 1
	if p.set.expressions++; p.set.expressions > maxExpressions {
		p.fail(at, fmt.Sprintf("There are more than %d expressions.", maxExpressions), "Join some by |, or use named patterns.")
		return
	}
	if written == "" || len(written) > maxExpression {
		p.fail(at, fmt.Sprintf("The expression has %d bytes.", len(written)), fmt.Sprintf("Use 1 to %d.", maxExpression))
		return
	}
	if compiled := p.compile(at, written); compiled != nil {
		r.what = append(r.what, redactor{expression: compiled, label: "[redacted]"})
	}
}

func (p *ruleLine) compile(at int, written string) *regexp.Regexp {
	plain := strings.ReplaceAll(written, `\/`, "/")
	parsed, err := syntax.Parse(plain, syntax.Perl)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		p.fail(at+max(0, strings.Index(written, wrong.Expr)), fmt.Sprintf("The expression is wrong: %s: %.60q.", wrong.Code, wrong.Expr),
			"Write it as RE2 has it, which knows no look-around and no back reference.")
		return nil
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		p.fail(at, fmt.Sprintf("The expression is wrong: %v.", err), "Write it as RE2 has it.")
		return nil
	}
	if p.set.steps += len(program.Inst); p.set.steps > maxSteps {
		p.fail(at, fmt.Sprintf("The expressions are too large: with this one they have %d steps.", p.set.steps),
			fmt.Sprintf("Use at most %d in all: a letter is one, and x{20} is twenty.", maxSteps))
		return nil
	}
	compiled := regexp.MustCompile(plain)
	if compiled.MatchString("") {
		p.fail(at, "The expression matches empty text.", "Use + instead of *, or name what must be there.")
		return nil
	}
	return compiled
}

func (p *ruleLine) setLevel(r *IngestRule) {
	if p.blanks(); !p.skip(entryfield.Level) {
		p.fail(p.at, "Only the level can be set.", "Write set level warn if and a query.")
		return
	}
	p.blanks()
	at := p.at
	name := p.word()
	level, ok := ParseSeverity([]byte(strings.Replace(name, "warning", "warn", 1)))
	if !ok {
		p.fail(at, fmt.Sprintf("%.40q is not a level.", name), "Use debug, info, warn, error or fatal.")
		return
	}
	if r.level = level; !p.skip("if") {
		p.blanks()
		p.fail(p.at, "The rule does not say of which entries.", `Write if and a query: set level warn if "deprecated" level:info.`)
		return
	}
	p.condition(r, "if", `set level warn if "deprecated" level:info`)
}
