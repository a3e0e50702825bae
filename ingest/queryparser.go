package ingest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/contract/entryfield"
)

// Bounds of a query.
const (
	MaxQueryBytes = 2000
	MaxQueryTerms = 32 // words, phrases and fields
	maxQueryDepth = 16 // of parentheses
	maxPathDots   = 16
)

// A QueryError is why a query can't be read.
type QueryError struct {
	At          int // the character where the fault is, from 1
	Detail, Fix string
}

func (e *QueryError) Error() string {
	return fmt.Sprintf("cannot read query: at character %d: %s %s", e.At, e.Detail, e.Fix)
}

// ParseQuery reads a query in the language of docs/searching.md, with a
// *QueryError where it can't.
func ParseQuery(text string) (Query, error) {
	if len(text) > MaxQueryBytes {
		return Query{}, &QueryError{
			At:     utf8.RuneCountInString(text[:MaxQueryBytes]),
			Detail: fmt.Sprintf("The query has %d bytes.", len(text)), Fix: fmt.Sprintf("Use at most %d.", MaxQueryBytes),
		}
	}
	p := queryParser{text: text}
	root := p.alternatives(0)
	if p.err == nil && p.at < len(p.text) {
		p.fail(p.at, "This parenthesis closes nothing.", `Remove it, or put it in quotes: ")".`)
	}
	if p.err != nil {
		return Query{}, p.err
	}
	return Query{root, text}, nil
}

// queryParser keeps its first error, and stops there.
type queryParser struct {
	text  string
	at    int
	terms int
	err   *QueryError
}

func (p *queryParser) fail(at int, detail, fix string) condition {
	if p.err == nil {
		p.err = &QueryError{At: utf8.RuneCountInString(p.text[:at]) + 1, Detail: detail, Fix: fix}
	}
	p.at = len(p.text)
	return all(nil)
}

// spaces skips spaces and returns the next character; 0 at the end.
func (p *queryParser) spaces() byte {
	p.at = len(p.text) - len(strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace))
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// operator skips a word in capitals that stands alone.
func (p *queryParser) operator(word string) bool {
	p.spaces()
	rest, found := strings.CutPrefix(p.text[p.at:], word)
	if next, _ := utf8.DecodeRuneInString(rest); !found || rest != "" && !unicode.IsSpace(next) && !strings.ContainsRune(`()"`, next) {
		return false
	}
	p.at += len(word)
	return true
}

// alternatives reads what OR joins; nil: nothing.
func (p *queryParser) alternatives(depth int) condition {
	first := p.conjunction(depth)
	list := either{first}
	for at := p.at; p.operator("OR"); at = p.at {
		next := p.conjunction(depth)
		if p.err == nil && (first == nil || next == nil) {
			return p.fail(at, "OR has nothing beside it.", `Put it between two terms, or in quotes: "OR".`)
		}
		list = append(list, next)
	}
	if len(list) == 1 {
		return first
	}
	return list
}

// conjunction reads terms up to OR or the end; nil: there is none.
func (p *queryParser) conjunction(depth int) condition {
	var list all
	for p.err == nil {
		at := p.at
		if c := p.spaces(); c == 0 || c == ')' || p.operator("OR") {
			p.at = at
			break
		}
		if at := p.at; p.operator("AND") {
			if c := p.spaces(); len(list) == 0 || c == 0 || c == ')' {
				return p.fail(at, "AND has nothing beside it.", `Put it between two terms, or in quotes: "AND".`)
			}
			continue
		}
		list = append(list, p.term(depth))
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return list
}

func (p *queryParser) term(depth int) condition {
	at := p.at
	not := p.operator("NOT")
	c := p.spaces()
	if !not && c == '-' {
		p.at++
		not, c = true, 0
		if dash := p.at; p.spaces() != 0 && p.at == dash {
			c = p.text[dash]
		}
	}
	switch {
	case !not:
		return p.plainTerm(depth)
	case c == 0 || c == ')':
		return p.fail(at, "There is nothing to exclude.", `Write the term right behind it, such as -debug, or put it in quotes: "-".`)
	}
	of := p.term(depth)
	if twice, ok := of.(negation); ok {
		return twice.of
	}
	return negation{of}
}

func (p *queryParser) plainTerm(depth int) condition {
	at := p.at
	if p.terms++; p.terms > MaxQueryTerms {
		return p.fail(at, "There are too many terms.", fmt.Sprintf("Use at most %d.", MaxQueryTerms))
	}
	switch p.text[at] {
	case '(':
		p.terms--
		return p.group(depth + 1)
	case '"':
		return p.words(at, p.quotedPattern(false))
	}
	if strings.IndexByte("!=<>&|", p.text[at]) >= 0 {
		return p.fail(at, fmt.Sprintf("%q is no operator here.", p.text[at:at+1]),
			`Write -term to exclude it, a OR b for either, field:value, or field:>5; or use quotes.`)
	}
	run := p.run()
	name, value, isField := strings.Cut(run, ":")
	switch {
	case !isField && strings.ContainsAny(run, "=<>"):
		return p.fail(at, "This is no field: a field has a colon.", "Write field:value or field:>500, or put the text in quotes.")
	case !isField:
		return p.words(at, p.starred(at, run))
	case strings.HasPrefix(value, "//") || strings.Trim(name, "0123456789.-T") == "":
		return p.fail(at, "A colon separates a field from its value.", fmt.Sprintf("Put the text in quotes to look for it: %q.", run))
	case p.at < len(p.text) && p.text[p.at] == '"' && (value == "" || value == "*"):
		return p.field(at, name, p.quotedPattern(value == "*"), true)
	case value != "":
		return p.field(at, name, p.starred(at, value), false)
	}
	return p.fail(p.at, fmt.Sprintf("%s has no value.", name), fmt.Sprintf(`Write it right behind the colon, such as %s:value or %s:"two words".`, name, name))
}

func (p *queryParser) group(depth int) condition {
	at := p.at
	if p.at++; depth > maxQueryDepth {
		return p.fail(at, "There are too many parentheses in each other.", fmt.Sprintf("Use at most %d.", maxQueryDepth))
	}
	inside := p.alternatives(depth)
	switch {
	case p.err != nil:
		return all(nil)
	case p.spaces() != ')':
		return p.fail(at, "This parenthesis is not closed.", `Close it, or put it in quotes: "(".`)
	case inside == nil:
		return p.fail(at, "There is nothing in the parentheses.", "Write terms between them, or remove them.")
	}
	p.at++
	return inside
}

// quoted reads a text in quotes; a backslash stands before a quote in it.
func (p *queryParser) quoted() string {
	at := p.at
	var text strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return text.String()
		case c == '\\' && p.at+1 < len(p.text) && strings.IndexByte(`"\`, p.text[p.at+1]) >= 0:
			p.at++
			text.WriteByte(p.text[p.at])
		default:
			text.WriteByte(c)
		}
	}
	p.fail(at, "The quotes are not closed.", `Close them, or write \" for a quote itself.`)
	return ""
}

// quotedPattern reads a text in quotes, and a star right behind it.
func (p *queryParser) quotedPattern(before bool) pattern {
	text, then := p.quoted(), false
	if p.at < len(p.text) && p.text[p.at] == '*' {
		p.at, then = p.at+1, true
	}
	return pattern{text: text, before: before, then: then}
}

// run reads up to a space, a parenthesis or a quote.
func (p *queryParser) run() string {
	start := p.at
	end := strings.IndexFunc(p.text[start:], func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`()"`, r) })
	if end < 0 {
		end = len(p.text) - start
	}
	p.at = start + end
	return p.text[start:p.at]
}

// starred reads the stars at the ends of a text.
func (p *queryParser) starred(at int, text string) pattern {
	text, then := strings.CutSuffix(text, "*")
	text, before := strings.CutPrefix(text, "*")
	if strings.Contains(text, "*") {
		p.fail(at, "There is a star inside.", "Put it at an end, or the text in quotes.")
	}
	return pattern{text: text, before: before, then: then}
}

// words are those of a text, one after the other.
func (p *queryParser) words(at int, text pattern) condition {
	var found phrase
	eachWord([]byte(text.text), func(word []byte) bool {
		found = append(found, pattern{text: string(word), needle: needleIn(string(word))})
		return true
	})
	switch {
	case p.err != nil:
	case len(found) == 0:
		return p.fail(at, "There is no word here.", "Name words of the message: letters and digits.")
	case len(found) > MaxQueryTerms:
		return p.fail(at, fmt.Sprintf("The phrase has %d words.", len(found)), fmt.Sprintf("Use at most %d.", MaxQueryTerms))
	default:
		found[0].before, found[len(found)-1].then = text.before, text.then
	}
	return found
}

func (p *queryParser) field(at int, name string, value pattern, quoted bool) condition {
	if strings.Contains(name, "*") || name == "exists" && (!value.whole() || value.text == "") {
		return p.fail(at, "A name of a field has no star.", "Write the whole name, such as metadata.user.id.")
	}
	if strings.Count(name, ".") > maxPathDots {
		return p.fail(at, "The path is too long.", fmt.Sprintf("Use at most %d dots.", maxPathDots))
	}
	switch name {
	case "":
		return p.fail(at, "There is no name before the colon.", "Write field:value, such as metadata.status:503.")
	case "exists":
		return fieldNamed(value.text, isPresent)
	case entryfield.Level:
		level, ok := ParseSeverity([]byte(fold(value.text)))
		if !ok || !value.whole() {
			return p.fail(at, fmt.Sprintf("%q is not a level.", p.text[at:p.at]), "Use level:debug, info, warn, error or fatal; join several by OR.")
		}
		return levels(SeveritySet(0).With(level))
	case entryfield.Message:
		return p.words(at, value)
	case entryfield.Environment:
		return inEnvironment(folded(value))
	}
	operator := value.text[:len(value.text)-len(strings.TrimLeft(value.text, "<>=!"))]
	if operator == "" || quoted {
		return textField(pathsOf(name), folded(value))
	}
	if !slices.Contains([]string{">", ">=", "<", "<="}, operator) {
		return p.fail(at, fmt.Sprintf("%q is no comparison.", operator),
			fmt.Sprintf(`Use >, >=, < or <=; %[1]s:value for equality; -%[1]s:value to exclude it.`, name))
	}
	number, err := strconv.ParseFloat(value.text[len(operator):], 64)
	if err != nil || !value.whole() || math.IsNaN(number) || math.IsInf(number, 0) {
		return p.fail(at, fmt.Sprintf("%q is not a number.", value.text[len(operator):]),
			fmt.Sprintf(`Compare with a number, such as %s:%s500, or put the text in quotes.`, name, operator))
	}
	return fieldNamed(name, isNumber(operator, number))
}

// fieldNamed is a field of whose values no text is known.
func fieldNamed(name string, holds func(value []byte) bool) field {
	return field{paths: pathsOf(name), holds: holds, needle: needleIn(fold(name[strings.LastIndexByte(name, '.')+1:]))}
}

func folded(value pattern) pattern {
	value.text = fold(value.text)
	return value
}

// pathsOf are where a field may be.
func pathsOf(name string) []jsonPath {
	return []jsonPath{jsonPath(name), jsonPath(entryfield.Metadata + "." + name)}
}
