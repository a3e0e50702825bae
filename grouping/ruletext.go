package grouping

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/ruletext/line"
)

// ParseRules reads the rules of a project, one a line:
//
//	own      path:src/shop/*
//	library  module:com.acme.legacy.*
//	ignore   function:assertOk
//	same     "Card declined"  type:*Declined message:*"card declined"*
//	group by default, metadata.tenant  where service:gateway
//	scrub    email
//	scrub    /order [A-Z]+/ as "order <id>"
//
// Lines that begin with # are for people.
func ParseRules(text string) (*Ruleset, error) { return parseRules(text, false) }

// ReadRules reads rules that are stored. What was a rule once and is none any more is left out.
func ReadRules(version int64, text string) *Ruleset {
	set, err := parseRules(text, true)
	if err != nil {
		set = &Ruleset{Text: text}
	}
	set.Version = version
	return set
}

func parseRules(text string, lenient bool) (*Ruleset, error) {
	set, steps := &Ruleset{Text: text}, 0
	err := line.Each(text, func(l *line.Line) error {
		p := ruleLine{l}
		rule, err := p.rule(&steps)
		if err == nil {
			err = set.add(rule, &p)
		}
		if lenient {
			return nil
		}
		return err
	})
	var fault line.Fault
	if errors.As(err, &fault) {
		return nil, Invalid{"rules", fault.Detail, fault.Fix}
	}
	return set, err
}

func (r *Ruleset) add(rule projectRule, p *ruleLine) error {
	index := len(r.rules)
	switch r.rules = append(r.rules, rule); rule.kind {
	case OwnRule, LibraryRule, IgnoreRule:
		r.frames = append(r.frames, index)
	case SameRule, GroupRule:
		r.errors = append(r.errors, index)
	case ScrubRule:
		r.scrubs = append(r.scrubs, index)
	}
	for _, of := range rule.fields() {
		if path, is := of.path(); is && !slices.Contains(r.Paths, path) {
			r.Paths = append(r.Paths, path)
		}
	}
	if r.terms += len(rule.of) + len(rule.in); r.terms > maxAllTerms {
		return p.Fault(0, fmt.Sprintf("The rules have more than %d conditions.", maxAllTerms), "Join some by stars, or remove some.")
	}
	if len(r.Paths) > maxRulePaths {
		return p.Fault(0, fmt.Sprintf("The rules ask for more than %d different values of metadata.", maxRulePaths), "Ask for fewer.")
	}
	return nil
}

// fields are those of its terms and parts.
func (r *projectRule) fields() (fields []field) {
	for _, t := range slices.Concat(r.of, r.in) {
		fields = append(fields, t.field)
	}
	for _, p := range r.by {
		fields = append(fields, p.field)
	}
	return fields
}

// A ruleLine is a line that is read.
type ruleLine struct{ *line.Line }

// word reads up to a blank.
func (p *ruleLine) word() string { return p.Word("") }

const ruleKinds = "Begin the line with own, library, ignore, same, group by or scrub; with # for a comment."

func (p *ruleLine) rule(steps *int) (r projectRule, err error) {
	begins := p.At
	r.kind, r.text = RuleKind(p.word()), strings.TrimSpace(p.Text)
	switch r.kind {
	case OwnRule, LibraryRule, IgnoreRule:
		err = p.terms(&r, true)
		if err == nil && len(r.in) == 0 {
			err = p.Fault(p.At, "The rule has no condition about frames.", "Add function:, module: or path:, such as path:vendor/*.")
		}
	case SameRule:
		if r.name, err = p.quoted("name", `Write a name in quotes: same "Card declined" type:*Declined.`, maxRuleName); err == nil {
			err = p.terms(&r, false)
		}
		if err == nil && len(r.of)+len(r.in) == 0 {
			err = p.Fault(p.At, "The rule has no condition.", "Add a condition, such as type:*Declined or message:*timeout*.")
		}
	case GroupRule:
		err = p.groupBy(&r)
	case ScrubRule:
		err = p.scrub(&r, steps)
	default:
		err = p.Fault(begins, fmt.Sprintf("%.40q is not a rule.", string(r.kind)), ruleKinds)
	}
	return r, err
}

// quoted reads a text in quotes, or a word.
func (p *ruleLine) quoted(what, fix string, most int) (string, error) {
	p.Blanks()
	begins := p.At
	parts, err := p.value(false)
	if err != nil {
		return "", err
	}
	text := strings.Join(parts, "*")
	if strings.TrimSpace(text) == "" {
		return "", p.Fault(begins, "There is no "+what+".", fix)
	}
	if utf8.RuneCountInString(text) > most {
		return "", p.Fault(begins, fmt.Sprintf("The %s is longer than %d characters.", what, most), "Use a shorter one.")
	}
	return text, nil
}

// value reads up to a blank outside quotes, and divides it at stars
// outside of them. Up to a comma, too, in a list.
func (p *ruleLine) value(list bool) (parts []string, err error) {
	begins := p.At
	var text strings.Builder
	inQuotes, from := false, 0
	for p.At < len(p.Text) {
		r, size := utf8.DecodeRuneInString(p.Rest())
		if !inQuotes && (unicode.IsSpace(r) || list && r == ',') {
			break
		}
		switch p.At += size; {
		case r == '"':
			inQuotes, from = !inQuotes, p.At-size
		case r == '\\' && p.At < len(p.Text) && strings.IndexByte(`"\*`, p.Text[p.At]) >= 0:
			text.WriteByte(p.Text[p.At])
			p.At++
		case r == '*' && !inQuotes:
			parts = append(parts, text.String())
			text.Reset()
		default:
			text.WriteRune(r)
		}
	}
	if inQuotes {
		return nil, p.Fault(from, "The quote is not closed.", `Add " at the end; \" is a quote inside.`)
	}
	if p.At-begins > maxRuleText {
		return nil, p.Fault(begins, fmt.Sprintf("The text is longer than %d bytes.", maxRuleText), "Use a shorter one with stars.")
	}
	return append(parts, text.String()), nil
}

// termFields are those of conditions.
var termFields = []field{fieldType, fieldMessage, fieldFunction, fieldModule, fieldPath, fieldService, fieldEnvironment}

const termHelp = "Use type:, message:, function:, module:, path:, service:, environment: or metadata.NAME:, " +
	"each with a text in which * stands for any characters."

// terms reads all that is left. Those about frames are apart.
func (p *ruleLine) terms(r *projectRule, ofFrames bool) error {
	for p.Blanks(); p.Rest() != ""; p.Blanks() {
		if len(r.of)+len(r.in) == maxTerms {
			return p.Fault(p.At, fmt.Sprintf("The rule has more than %d conditions.", maxTerms), "Write several rules.")
		}
		t, err := p.term()
		if err != nil {
			return err
		}
		if t.field.ofFrame() {
			r.in = append(r.in, t)
		} else {
			r.of = append(r.of, t)
		}
	}
	if ofFrames && len(r.in) > 0 && !slices.ContainsFunc(r.in, func(t term) bool { return !t.not }) {
		return p.Fault(p.At, "The rule only says what a frame is not.", "Add a condition without -.")
	}
	return nil
}

func (p *ruleLine) term() (t term, err error) {
	begins := p.At
	if strings.HasPrefix(p.Rest(), "-") {
		t.not = true
		p.At++
	}
	end := strings.IndexFunc(p.Rest(), func(r rune) bool { return r == ':' || r == '"' || unicode.IsSpace(r) })
	if end < 0 || p.Rest()[end] != ':' {
		return t, p.Fault(begins, fmt.Sprintf("%.40q is not a condition.", firstWord(p.Text[begins:])), termHelp)
	}
	t.field = field(p.Rest()[:end])
	if err := p.checkField(t.field, termFields, termHelp); err != nil {
		return t, err
	}
	p.At += end + 1
	from := p.At
	t.glob.parts, err = p.value(false)
	switch {
	case err != nil:
	case len(t.glob.parts) > maxStars+1:
		err = p.Fault(from, fmt.Sprintf("There are more than %d stars.", maxStars), "Use fewer.")
	case from == p.At:
		err = p.Fault(from, fmt.Sprintf("There is nothing after %q.", string(t.field)+":"),
			fmt.Sprintf(`Write a text with stars, or %s:"" for what has none.`, t.field))
	}
	return t, err
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

func (p *ruleLine) checkField(f field, known []field, fix string) error {
	if slices.Contains(known, f) {
		return nil
	}
	path, is := f.path()
	if !is {
		return p.Fault(p.At, fmt.Sprintf("%.40q is not a field.", string(f)), fix)
	}
	if !isPath(path) {
		return p.Fault(p.At, fmt.Sprintf("%.100q is not a path in metadata.", path),
			fmt.Sprintf("Use names with dots between, such as metadata.tenant.id; at most %d bytes.", maxPath))
	}
	return nil
}

// partFields are those of parts.
var partFields = append([]field{fieldDefault}, termFields...)

const partHelp = `Use default, type, message, function, module, path, service, environment, metadata.NAME, or a text in quotes.`

// groupBy reads parts, and conditions after "where".
func (p *ruleLine) groupBy(r *projectRule) error {
	if by := p.word(); by != "by" {
		return p.Fault(p.At-len(by), "The word by must follow group.", "Write group by type, metadata.tenant where service:gateway.")
	}
	for {
		p.Blanks()
		if len(r.by) == maxParts {
			return p.Fault(p.At, fmt.Sprintf("There are more than %d parts.", maxParts), "Use fewer.")
		}
		one, err := p.part()
		if err != nil {
			return err
		}
		r.by = append(r.by, one)
		if p.Blanks(); strings.HasPrefix(p.Rest(), ",") {
			p.At++
			continue
		}
		break
	}
	if p.Rest() == "" {
		return nil
	}
	from := p.At
	if p.word() != "where" {
		return p.Fault(from, "The list of parts ends here.", "Put a comma between parts, and where before conditions.")
	}
	err := p.terms(r, false)
	if err == nil && len(r.of)+len(r.in) == 0 {
		err = p.Fault(p.At, "There is no condition after where.", termHelp)
	}
	return err
}

func (p *ruleLine) part() (one byPart, err error) {
	from, isText := p.At, strings.HasPrefix(p.Rest(), `"`)
	parts, err := p.value(true)
	if err != nil {
		return one, err
	}
	text := strings.Join(parts, "*")
	if isText {
		return byPart{text: text}, nil
	}
	end := p.At
	p.At = from
	if err := p.checkField(field(text), partFields, partHelp); err != nil {
		return one, err
	}
	p.At = end
	return byPart{field: field(text)}, nil
}

// scrubs are patterns with names. What they look for is rare, so a text is
// searched for what it must have first.
var scrubs = map[string]struct {
	what *regexp.Regexp
	may  func(text string) bool
	with string
}{
	"email": {regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`), func(s string) bool { return strings.IndexByte(s, '@') > 0 }, "<email>"},
	"ip": {regexp.MustCompile(`\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b|\b(?:[0-9A-Fa-f]{1,4}:){4,7}[0-9A-Fa-f]{1,4}\b`),
		func(s string) bool { return strings.Count(s, ".") >= 3 || strings.Count(s, ":") >= 4 }, "<ip>"},
	"card": {regexp.MustCompile(`\b(?:[0-9][ -]?){12,18}[0-9]\b`), func(s string) bool { return digits(s) >= 13 }, "<card>"},
	"uuid": {regexp.MustCompile(`\b[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b`), func(s string) bool { return strings.Count(s, "-") >= 4 }, "<uuid>"},
	"token": {regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|\b[Bb]earer [A-Za-z0-9._~+/-]+=*`),
		func(s string) bool { return strings.Contains(s, "eyJ") || strings.Contains(s, "earer ") }, "<token>"},
}

func digits(text string) (n int) {
	for i := range len(text) {
		if c := text[i]; c >= '0' && c <= '9' {
			n++
		}
	}
	return n
}

// scrubbed is what replaces it, unless a rule says what.
const scrubbed = "***"

func (p *ruleLine) scrub(r *projectRule, steps *int) error {
	p.Blanks()
	from := p.At
	if !strings.HasPrefix(p.Rest(), "/") {
		name := p.word()
		known, is := scrubs[name]
		if !is {
			return p.Fault(from, fmt.Sprintf("%.40q is not a pattern to scrub.", name),
				"Use "+strings.Join(slices.Sorted(maps.Keys(scrubs)), ", ")+", or an expression between slashes: /order [0-9]+/.")
		}
		r.what, r.may, r.with = known.what, known.may, known.with
	} else {
		var err error
		if r.what, err = p.Expression(maxRuleText, steps, maxExpression); err != nil {
			return err
		}
		r.with = scrubbed
	}
	if p.Blanks(); p.Rest() == "" {
		return nil
	}
	from = p.At
	if p.word() != "as" {
		return p.Fault(from, "The rule should end here.", `Write as "TEXT" to say what replaces it.`)
	}
	var err error
	if p.Blanks(); strings.HasPrefix(p.Rest(), `""`) {
		p.At += len(`""`)
		r.with = ""
	} else if r.with, err = p.quoted("text", `Write what replaces it, in quotes; "" for nothing.`, maxRuleName); err != nil {
		return err
	}
	if p.Blanks(); p.Rest() != "" {
		return p.Fault(p.At, "The rule should end here.", "Put texts with blanks in quotes.")
	}
	return nil
}
