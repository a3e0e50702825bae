package trace

import "strings"

// JavaScript engines word the same mistake differently, and quote code, whose variables bundlers rename. They agree on
// the kind of mistake and on the property's name, which is not renamed.

// phrase is how one engine words a mistake: a beginning ("" for any), and code between two marks.
type phrase struct {
	mistake          string
	begin, from, end string
	code             quoted
}

// quoted is what a message quotes.
type quoted uint8

const (
	quotesNothing quoted = iota
	quotesCode           // "e.total": the last name is a property, a single one a variable
	quotesName           // as it was written
)

// phrases are those of Chrome and Node, Firefox, Safari.
var phrases = [...]phrase{
	{"no value", "Cannot read propert", "reading '", "'", quotesName},
	{"no value", "Cannot set propert", "setting '", "'", quotesName},
	{"no value", "Cannot read property '", "", "' of ", quotesName},
	{"no value", "Cannot set property '", "", "' of ", quotesName},
	{"no value", "Cannot destructure property '", "", "'", quotesName},
	{"no value", `can't access property "`, "", `"`, quotesName},
	{"no value", "undefined is not an object", "evaluating '", "')", quotesCode},
	{"no value", "null is not an object", "evaluating '", "')", quotesCode},
	{"no value", "", "", " is undefined", quotesCode},
	{"no value", "", "", " is null", quotesCode},
	{"no function", "", "", " is not a function", quotesCode},
	{"no constructor", "", "", " is not a constructor", quotesCode},
	{"not defined", "", "", " is not defined", quotesName},
	{"not defined", "Can't find variable: ", "", "", quotesName},
	{"no module", "Failed to fetch dynamically imported module", "", "", quotesNothing},
	{"no module", "error loading dynamically imported module", "", "", quotesNothing},
	{"no module", "Importing a module script failed", "", "", quotesNothing},
	{"no network", "Failed to fetch", "", "", quotesNothing},
	{"no network", "NetworkError when attempting to fetch resource", "", "", quotesNothing},
	{"no network", "Load failed", "", "", quotesNothing},
}

// EngineMistake returns the mistake that a message of an engine's error reports, and the missing name; "" where it has
// none.
func EngineMistake(typ, message string) (mistake, missing string) {
	if !strings.HasSuffix(typ, "Error") || !javascriptEngine[typ] {
		return "", ""
	}
	message = strings.TrimSpace(message)
	for i := range phrases {
		if p := &phrases[i]; strings.HasPrefix(message, p.begin) {
			if code, ok := p.cut(message[len(p.begin):]); ok {
				return p.mistake, p.missing(code)
			}
		}
	}
	return "", ""
}

// IsNetworkMistake reports whether something could not be fetched: not by a mistake of the function that tried, though
// the type says so.
func IsNetworkMistake(mistake string) bool {
	return mistake == "no network" || mistake == "no module"
}

// cut takes the code out of what follows the beginning.
func (p *phrase) cut(s string) (code string, ok bool) {
	if p.from != "" {
		if _, s, ok = strings.Cut(s, p.from); !ok {
			return "", false
		}
	}
	if p.end == "" {
		return s, true
	}
	code, _, ok = strings.Cut(s, p.end)
	return code, ok && (p.begin != "" || isCode(code))
}

// missing is the name in quoted code that no bundler changes; "" if there is none.
func (p *phrase) missing(code string) string {
	name, property := code, true
	if p.code == quotesCode {
		_, name, property = cutLast(withoutCall(code), ".")
	}
	if !property || p.code == quotesNothing || !isIdentifier(name) {
		return ""
	}
	return name
}

// withoutCall drops what is done with a property, "e.total()" and "e.total = 1", and the parenthesis of
// "(0 , e.total)".
func withoutCall(code string) string {
	code, _, _ = strings.Cut(code, " = ")
	depth := 0
	for i := len(code) - 1; i >= 0 && code[len(code)-1] == ')'; i-- {
		switch code[i] {
		case ')':
			depth++
		case '(':
			depth--
		}
		if depth == 0 && i > 0 {
			return code[:i]
		}
	}
	return strings.Trim(code, "()")
}

// isCode distinguishes an expression from words: blanks are in parentheses only.
func isCode(s string) bool {
	return s != "" && strings.IndexByte(s[:cutAt(s, 0, '(')], ' ') < 0
}

func isIdentifier(s string) bool { return s != "" && marksOf(s)&^inIdentifier == 0 && !isDigit(s[0]) }

var inIdentifier = letters | marksOf("0_$")
