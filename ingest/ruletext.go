package ingest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/contract/entryfield"
	"github.com/weirlog/weir/shared/ruletext/line"
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
	set := &Ruleset{Text: text}
	var after []IngestRule
	err := line.Each(text, func(l *line.Line) error {
		p := ruleLine{Line: l, set: set}
		rule := IngestRule{Line: l.Number(), Text: l.Rest()}
		if p.rule(&rule); rule.AfterCharge {
			after = append(after, rule)
		} else {
			set.rules = append(set.rules, rule)
		}
		return p.err
	})
	var fault line.Fault
	if errors.As(err, &fault) {
		return nil, Invalid{"rules", fault.Detail, fault.Fix}
	}
	set.afterCharge = len(set.rules)
	set.rules = append(set.rules, after...)
	return set, err
}

// A ruleLine is a line that is read. It keeps its first fault.
type ruleLine struct {
	*line.Line
	set *Ruleset
	err error
}

func (p *ruleLine) fail(at int, detail, fix string) {
	if p.err == nil {
		p.err = p.Fault(at, detail, fix)
	}
}

// word reads up to a blank or a comma.
func (p *ruleLine) word() string { return p.Word(",") }

// skip reads a word if it is the next one.
func (p *ruleLine) skip(word string) bool {
	from := p.At
	if p.word() == word {
		return true
	}
	p.At = from
	return false
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
	begins := p.At
	p.Text, r.AfterCharge = cutAfterTheCharge(p.Text)
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
		p.fail(begins, fmt.Sprintf("%.40q is not a rule.", kind), "Begin the line with drop, sample, redact or set level; with # for a comment.")
	}
}

// condition reads the query at the end of a rule.
func (p *ruleLine) condition(r *IngestRule, behind, example string) {
	p.Blanks()
	if p.Rest() == "" {
		p.fail(len(p.Text), fmt.Sprintf("There is no condition after %s.", behind), fmt.Sprintf("Name entries by a query: %s.", example))
		return
	}
	var fault *QueryError
	var err error
	if r.when, err = ParseQuery(p.Rest()); errors.As(err, &fault) {
		p.err = p.FaultAt(fault.At+utf8.RuneCountInString(p.Text[:p.At]), fault.Detail, fault.Fix)
		return
	}
	eachCondition(r.when.root, func(c condition) {
		_, asks := c.(inEnvironment)
		p.set.byEnvironment = p.set.byEnvironment || asks
	})
}

// mayEnd reads the condition of a rule that needs none.
func (p *ruleLine) mayEnd(r *IngestRule, fix string) {
	switch p.Blanks(); {
	case p.err != nil || p.Rest() == "":
	case p.skip("if"):
		p.condition(r, "if", "if level:info")
	default:
		p.fail(p.At, fmt.Sprintf("The rule goes on with %.40q.", p.Rest()), fix)
	}
}

func (p *ruleLine) sample(r *IngestRule) {
	p.Blanks()
	at := p.At
	text, is := strings.CutSuffix(p.word(), "%")
	percent, err := strconv.ParseFloat(text, 64)
	if !is || err != nil || !(percent > 0 && percent < 100) || strings.Trim(text, "0123456789.") != "" {
		p.fail(at, fmt.Sprintf("%.40q is not a percentage.", p.Text[at:p.At]),
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
		p.Blanks()
		at := p.At
		name := p.word()
		field, err := ParseField(name)
		switch {
		case n > most:
			p.fail(at, "The rule has too many fields.", fmt.Sprintf("Name at most %d.", most))
		case kind == RuleRedact && isFixed(name):
			p.fail(at, fmt.Sprintf("%s can't be redacted.", name), fmt.Sprintf("Name other fields; metadata.%s for one of that name in metadata.", name))
		case err != nil || len(field.paths) == 0:
			p.fail(at, fmt.Sprintf("%.40q is not a field of the text.", name), "Name one, such as message, error.message or metadata.user.id.")
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
	p.Blanks()
	if !strings.HasPrefix(p.Rest(), ",") {
		return false
	}
	p.At++
	return true
}

func (p *ruleLine) redact(r *IngestRule) {
	for n := 0; p.err == nil; n++ {
		if p.Blanks(); n == maxRulePatterns {
			p.fail(p.At, fmt.Sprintf("There are more than %d patterns.", maxRulePatterns), "Write a second rule.")
		} else if strings.HasPrefix(p.Rest(), "/") {
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
	at := p.At
	name := p.word()
	redactors, is := secrets[name]
	if !is {
		p.fail(at, fmt.Sprintf("%.40q is not a pattern.", name),
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
	if p.set.expressions++; p.set.expressions > maxExpressions {
		p.fail(p.At+1, fmt.Sprintf("There are more than %d expressions.", maxExpressions), "Join some by |, or use named patterns.")
		return
	}
	compiled, err := p.Expression(maxExpression, &p.set.steps, maxSteps)
	if err != nil {
		p.err = err
		return
	}
	r.what = append(r.what, redactor{expression: compiled, label: "[redacted]"})
}

func (p *ruleLine) setLevel(r *IngestRule) {
	if p.Blanks(); !p.skip(entryfield.Level) {
		p.fail(p.At, "Only the level can be set.", "Write set level warn if and a query.")
		return
	}
	p.Blanks()
	at := p.At
	name := p.word()
	level, ok := ParseSeverity([]byte(strings.Replace(name, "warning", "warn", 1)))
	if !ok {
		p.fail(at, fmt.Sprintf("%.40q is not a level.", name), "Use debug, info, warn, error or fatal.")
		return
	}
	if r.level = level; !p.skip("if") {
		p.Blanks()
		p.fail(p.At, "The rule does not say of which entries.", `Write if and a query: set level warn if "deprecated" level:info.`)
		return
	}
	p.condition(r, "if", `set level warn if "deprecated" level:info`)
}
