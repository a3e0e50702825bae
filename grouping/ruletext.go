package grouping

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
	if len(text) > MaxRulesText {
		return nil, Invalid{"rules", fmt.Sprintf("The rules have %s bytes.", thousands(len(text))), fmt.Sprintf("Use at most %s.", thousands(MaxRulesText))}
	}
	set, steps := &Ruleset{Text: text}, 0
	for n, line := range strings.Split(text, "\n") {
		p := ruleLine{text: strings.TrimSuffix(line, "\r")}
		if at := strings.IndexFunc(p.text, func(r rune) bool { return r < ' ' && r != '\t' || r == utf8.RuneError }); at >= 0 {
			return nil, lineFault(n, p.text, p.fault(at, "This is no text.", "Remove the character."))
		}
		if p.blanks(); p.rest() == "" || p.text[p.at] == '#' {
			continue
		}
		if len(set.rules) == MaxRules {
			return nil, lineFault(n, p.text, p.fault(p.at, fmt.Sprintf("There are more than %d rules.", MaxRules), "Join some by stars, or remove some."))
		}
		rule, err := p.rule(&steps)
		if err == nil {
			err = set.add(rule, &p)
		}
		if err != nil && !lenient {
			return nil, lineFault(n, p.text, err)
		}
	}
	return set, nil
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
		return p.fault(0, fmt.Sprintf("The rules have more than %d conditions.", maxAllTerms), "Join some by stars, or remove some.")
	}
	if len(r.Paths) > maxRulePaths {
		return p.fault(0, fmt.Sprintf("The rules ask for more than %d different values of metadata.", maxRulePaths), "Ask for fewer.")
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

// A ruleFault is what is wrong with a line, and where.
type ruleFault struct {
	at          int
	detail, fix string
}

func (f ruleFault) Error() string { return f.detail + " " + f.fix }

func lineFault(n int, line string, err error) error {
	var fault ruleFault
	if !errors.As(err, &fault) {
		return err
	}
	character := utf8.RuneCountInString(line[:min(fault.at, len(line))]) + 1
	return Invalid{"rules", fmt.Sprintf("Line %d, character %d: %s", n+1, character, fault.detail), fault.fix}
}

// ruleLine is a line that is read.
type ruleLine struct {
	text string
	at   int
}

func (*ruleLine) fault(at int, detail, fix string) error { return ruleFault{at, detail, fix} }

func (p *ruleLine) rest() string { return p.text[p.at:] }

func (p *ruleLine) blanks() {
	p.at += len(p.rest()) - len(strings.TrimLeftFunc(p.rest(), unicode.IsSpace))
}

// word reads up to a blank.
func (p *ruleLine) word() string {
	p.blanks()
	from := p.at
	if end := strings.IndexFunc(p.rest(), unicode.IsSpace); end >= 0 {
		p.at += end
	} else {
		p.at = len(p.text)
	}
	return p.text[from:p.at]
}

const ruleKinds = "Begin the line with own, library, ignore, same, group by or scrub; with # for a comment."

func (p *ruleLine) rule(steps *int) (r projectRule, err error) {
	begins := p.at
	r.kind, r.text = RuleKind(p.word()), strings.TrimSpace(p.text)
	switch r.kind {
	case OwnRule, LibraryRule, IgnoreRule:
		err = p.terms(&r, true)
		if err == nil && len(r.in) == 0 {
			err = p.fault(p.at, "The rule names no frame.", "Add function:, module: or path:, such as path:vendor/*.")
		}
	case SameRule:
		if r.name, err = p.quoted("name", `Write a name in quotes: same "Card declined" type:*Declined.`, maxRuleName); err == nil {
			err = p.terms(&r, false)
		}
		if err == nil && len(r.of)+len(r.in) == 0 {
			err = p.fault(p.at, "The rule says of no error what it is like.", "Add a condition, such as type:*Declined or message:*timeout*.")
		}
	case GroupRule:
		err = p.groupBy(&r)
	case ScrubRule:
		err = p.scrub(&r, steps)
	default:
		err = p.fault(begins, fmt.Sprintf("%.40q is no rule.", string(r.kind)), ruleKinds)
	}
	return r, err
}

// quoted reads a text in quotes, or a word.
func (p *ruleLine) quoted(what, fix string, most int) (string, error) {
	p.blanks()
	begins := p.at
	parts, err := p.value(false)
	if err != nil {
		return "", err
	}
	text := strings.Join(parts, "*")
	if strings.TrimSpace(text) == "" {
		return "", p.fault(begins, "There is no "+what+".", fix)
	}
	if utf8.RuneCountInString(text) > most {
		return "", p.fault(begins, fmt.Sprintf("The %s is longer than %d characters.", what, most), "Use a shorter one.")
	}
	return text, nil
}

// value reads up to a blank outside quotes, and divides it at stars
// outside of them. Up to a comma, too, in a list.
func (p *ruleLine) value(list bool) (parts []string, err error) {
	begins := p.at
	var text strings.Builder
	inQuotes, from := false, 0
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.rest())
		if !inQuotes && (unicode.IsSpace(r) || list && r == ',') {
			break
		}
		switch p.at += size; {
		case r == '"':
			inQuotes, from = !inQuotes, p.at-size
		case r == '\\' && p.at < len(p.text) && strings.IndexByte(`"\*`, p.text[p.at]) >= 0:
			text.WriteByte(p.text[p.at])
			p.at++
		case r == '*' && !inQuotes:
			parts = append(parts, text.String())
			text.Reset()
		default:
			text.WriteRune(r)
		}
	}
	if inQuotes {
		return nil, p.fault(from, "The quote is not closed.", `Add " at the end; \" is a quote inside.`)
	}
	if p.at-begins > maxRuleText {
		return nil, p.fault(begins, fmt.Sprintf("The text is longer than %d bytes.", maxRuleText), "Use a shorter one with stars.")
	}
	return append(parts, text.String()), nil
}

// termFields are those of conditions.
var termFields = []field{fieldType, fieldMessage, fieldFunction, fieldModule, fieldPath, fieldService, fieldEnvironment}

const termHelp = "Use type:, message:, function:, module:, path:, service:, environment: or metadata.NAME:, " +
	"each with a text in which * stands for any characters."

// terms reads all that is left. Those about frames are apart.
func (p *ruleLine) terms(r *projectRule, ofFrames bool) error {
	for p.blanks(); p.rest() != ""; p.blanks() {
		if len(r.of)+len(r.in) == maxTerms {
			return p.fault(p.at, fmt.Sprintf("The rule has more than %d conditions.", maxTerms), "Write several rules.")
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
		return p.fault(p.at, "The rule only says what a frame is not.", "Add a condition without -.")
	}
	return nil
}

func (p *ruleLine) term() (t term, err error) {
	begins := p.at
	if strings.HasPrefix(p.rest(), "-") {
		t.not = true
		p.at++
	}
	end := strings.IndexFunc(p.rest(), func(r rune) bool { return r == ':' || r == '"' || unicode.IsSpace(r) })
	if end < 0 || p.rest()[end] != ':' {
		return t, p.fault(begins, fmt.Sprintf("%.40q is no condition.", firstWord(p.text[begins:])), termHelp)
	}
	t.field = field(p.rest()[:end])
	if err := p.checkField(t.field, termFields, termHelp); err != nil {
		return t, err
	}
	p.at += end + 1
	from := p.at
	t.glob.parts, err = p.value(false)
	switch {
	case err != nil:
	case len(t.glob.parts) > maxStars+1:
		err = p.fault(from, fmt.Sprintf("There are more than %d stars.", maxStars), "Use fewer.")
	case from == p.at:
		err = p.fault(from, fmt.Sprintf("There is nothing behind %q.", string(t.field)+":"),
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
		return p.fault(p.at, fmt.Sprintf("%.40q is no field.", string(f)), fix)
	}
	if err := (Paths{User: []string{path}}).Check(); err != nil {
		return p.fault(p.at, fmt.Sprintf("%.100q is no path in metadata.", path),
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
		return p.fault(p.at-len(by), "A rule to group has by behind it.", "Write group by type, metadata.tenant where service:gateway.")
	}
	for {
		p.blanks()
		if len(r.by) == maxParts {
			return p.fault(p.at, fmt.Sprintf("There are more than %d parts.", maxParts), "Use fewer.")
		}
		one, err := p.part()
		if err != nil {
			return err
		}
		r.by = append(r.by, one)
		if p.blanks(); strings.HasPrefix(p.rest(), ",") {
			p.at++
			continue
		}
		break
	}
	if p.rest() == "" {
		return nil
	}
	from := p.at
	if p.word() != "where" {
		return p.fault(from, "The parts have ended here.", "Put a comma between parts, and where before conditions.")
	}
	err := p.terms(r, false)
	if err == nil && len(r.of)+len(r.in) == 0 {
		err = p.fault(p.at, "There is no condition behind where.", termHelp)
	}
	return err
}

func (p *ruleLine) part() (one byPart, err error) {
	from, isText := p.at, strings.HasPrefix(p.rest(), `"`)
	parts, err := p.value(true)
	if err != nil {
		return one, err
	}
	text := strings.Join(parts, "*")
	if isText {
		return byPart{text: text}, nil
	}
	end := p.at
	p.at = from
	if err := p.checkField(field(text), partFields, partHelp); err != nil {
		return one, err
	}
	p.at = end
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

// scrubbed is what stands instead, unless a rule says what.
const scrubbed = "***"

func (p *ruleLine) scrub(r *projectRule, steps *int) error {
	p.blanks()
	from := p.at
	if !strings.HasPrefix(p.rest(), "/") {
		name := p.word()
		known, is := scrubs[name]
		if !is {
			return p.fault(from, fmt.Sprintf("%.40q is nothing to scrub.", name),
				"Use "+strings.Join(slices.Sorted(maps.Keys(scrubs)), ", ")+", or an expression between slashes: /order [0-9]+/.")
		}
		r.what, r.may, r.with = known.what, known.may, known.with
	} else if err := p.expression(r, steps); err != nil {
		return err
	}
	if p.blanks(); p.rest() == "" {
		return nil
	}
	from = p.at
	if p.word() != "as" {
		return p.fault(from, "The rule should end here.", `Write as "TEXT" to say what stands instead.`)
	}
	var err error
	if p.blanks(); strings.HasPrefix(p.rest(), `""`) {
		p.at += len(`""`)
		r.with = ""
	} else if r.with, err = p.quoted("text", `Write what stands instead, in quotes; "" for nothing.`, maxRuleName); err != nil {
		return err
	}
	if p.blanks(); p.rest() != "" {
		return p.fault(p.at, "The rule should end here.", "Put texts with blanks in quotes.")
	}
	return nil
}

// expression reads /…/.
func (p *ruleLine) expression(r *projectRule, steps *int) error {
	from := p.at + 1
	end := from
	for end < len(p.text) && p.text[end] != '/' {
		if p.text[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(p.text) {
		return p.fault(p.at, "The expression is not closed.", `Add / at its end; \/ is a slash inside.`)
	}
	written := p.text[from:end]
	if written == "" || len(written) > maxRuleText {
		return p.fault(from, fmt.Sprintf("The expression has %d bytes.", len(written)), fmt.Sprintf("Use 1 to %d.", maxRuleText))
	}
	parsed, err := syntax.Parse(strings.ReplaceAll(written, `\/`, "/"), syntax.Perl)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return p.fault(from+max(0, strings.Index(written, wrong.Expr)), fmt.Sprintf("The expression is wrong: %s: %.60q.", wrong.Code, wrong.Expr),
			"Write it as RE2 has it, which knows no look-around and no back reference.")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return p.fault(from, fmt.Sprintf("The expression is wrong: %v.", err), "Write it as RE2 has it.")
	}
	if *steps += len(program.Inst); *steps > maxExpression {
		return p.fault(from, fmt.Sprintf("The expressions are too large: with this one they have %s steps.", thousands(*steps)),
			fmt.Sprintf("Use at most %d in all: a letter is one, and x{20} is twenty.", maxExpression))
	}
	r.what, r.with, p.at = regexp.MustCompile(strings.ReplaceAll(written, `\/`, "/")), scrubbed, end+1
	if r.what.MatchString("") {
		return p.fault(from, "The expression matches where nothing stands.", "Use + instead of *, or name what must be there.")
	}
	return nil
}
