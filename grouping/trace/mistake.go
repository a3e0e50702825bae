package trace

import "strings"

// IsFault reports whether an error is a mistake of the function that throws it, such as a null dereference: its caller
// does not identify it. What is missing by its key or index is no such mistake.
func (l Language) IsFault(typ, message string) bool {
	name := typeBreaks.afterLast(typ)
	return faults[name] || endsWithAny(name, "NullPointerException", "ClassCastException") || GoFault(message) != "" ||
		(l == Native || l == Unknown) && memoryFault(typ)
}

// GoFault is the fault of which Go's runtime has no type of its own; "" where the message names none.
func GoFault(message string) string {
	fault, ok := strings.CutPrefix(message, "runtime error: ")
	if ok && (strings.HasPrefix(fault, "invalid memory address") || strings.HasPrefix(fault, "integer divide")) {
		return fault
	}
	return ""
}

// IsOverflow reports endless recursion. Where it ends is chance; its cycle of functions is the bug.
func IsOverflow(typ, message string) bool {
	return strings.HasSuffix(typ, "RecursionError") || containsAny(typ, overflowTypes) || containsAny(message, overflows)
}

var (
	overflowTypes = partsOf("StackOverflow", "SystemStackError", "InsufficientExecutionStack")
	overflows     = partsOf("too much recursion", "call stack size exceeded", "stack overflow")
)

var (
	typeBreaks   = marksOf(".:\\") // in front of the last part of a type's name
	inIdentifier = letters | marksOf("0_$")
)

// JavaScript engines word the same mistake differently, and quote code, whose variables bundlers rename. They agree on
// the kind of mistake and on the property's name, which is not renamed.

// phrases are how Chrome and Node, Firefox, Safari word mistakes: with code in place of $msg, of which the last name is a
// property and a single one a variable, or with a name in place of $type.
var phrases = [...]namedForm{
	{"no value", formOf("Cannot read propert$_reading '$type'$_")}, {"no value", formOf("Cannot set propert$_setting '$type'$_")},
	{"no value", formOf("Cannot read property '$type' of $_")}, {"no value", formOf("Cannot set property '$type' of $_")},
	{"no value", formOf("Cannot destructure property '$type'$_")}, {"no value", formOf(`can't access property "$type"$_`)},
	{"no value", formOf("undefined is not an object$_evaluating '$msg')$_")}, {"no value", formOf("null is not an object$_evaluating '$msg')$_")},
	{"no value", formOf("$msg is undefined$_")}, {"no value", formOf("$msg is null$_")},
	{"no function", formOf("$msg is not a function$_")}, {"no constructor", formOf("$msg is not a constructor$_")},
	{"not defined", formOf("$type is not defined$_")}, {"not defined", formOf("Can't find variable: $type")},
	{"no module", formOf("Failed to fetch dynamically imported module$_")}, {"no module", formOf("error loading dynamically imported module$_")},
	{"no module", formOf("Importing a module script failed$_")},
	{"no network", formOf("Failed to fetch$_")}, {"no network", formOf("NetworkError when attempting to fetch resource$_")},
	{"no network", formOf("Load failed$_")},
}

// EngineMistake returns the mistake that a message of an engine's error reports, and the missing name that no bundler
// changes; "" where it has none.
func EngineMistake(typ, message string) (mistake, missing string) {
	if !strings.HasSuffix(typ, "Error") || !javascriptEngine[typ] {
		return "", ""
	}
	message = strings.TrimSpace(message)
	for i := range phrases {
		var m mark
		p := &phrases[i]
		if !p.read(message, nil, &m) {
			continue
		}
		code := m.typ + m.message
		if p.begin == "" && (code == "" || strings.IndexByte(code[:cutAt(code, 0, '(')], ' ') >= 0) { // words: blanks are in parentheses only
			continue
		}
		if _, name, property := cutLast(withoutCall(m.message), "."); property {
			m.typ = name
		}
		if !isIdentifier(m.typ) {
			m.typ = ""
		}
		return phrases[i].name, m.typ
	}
	return "", ""
}

// IsNetworkMistake reports whether something could not be fetched: not by a mistake of the function that tried, though
// the type says so.
func IsNetworkMistake(mistake string) bool {
	return mistake == "no network" || mistake == "no module"
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

func isIdentifier(s string) bool { return s != "" && marksOf(s)&^inIdentifier == 0 && !isDigit(s[0]) }
