package trace

import "strings"

// Dart and Flutter: "#0 Cart.total (package:shop/cart.dart:12:5)", on the web
// "package:shop/cart.dart 12:5 Cart.total".

func dartFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	if !strings.HasPrefix(s, "#") {
		return dartWebFrame(s)
	}
	rest, ok := cutIndex(s)
	name, place, called := cutLast(rest, " (")
	if !ok || !called || !strings.HasSuffix(place, ")") || !isDartPlace(place) {
		return Frame{}, false
	}
	f := Frame{Function: strings.TrimSpace(name), File: place[:len(place)-1]}
	if file, line, column, ok := cutPosition(f.File); ok {
		f.File, f.Line, f.Column = file, line, column
	}
	return f, true
}

func dartWebFrame(s string) (Frame, bool) {
	file, rest, ok := strings.Cut(s, " ")
	if !ok || !isDartPlace(file) || !strings.HasSuffix(file, ".dart") {
		return Frame{}, false
	}
	position, name, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	line, column, ok := strings.Cut(position, ":")
	return Frame{File: file, Line: number(line), Column: number(column), Function: strings.TrimSpace(name)}, ok && allDigits(line) && allDigits(column)
}

func isDartPlace(s string) bool {
	return strings.HasPrefix(s, "package:") || strings.HasPrefix(s, "dart:") || strings.HasPrefix(s, "file:///") && strings.Contains(s, ".dart") ||
		strings.HasPrefix(s, "org-dartlang")
}

var dartIntros = []intro{{"Unhandled exception:", messageBelow, nil}}

// dartMark reads "The following _TypeError was thrown building
// CartView:", which Flutter prints above the message and the trace.
func dartMark(s string) mark {
	if rest, ok := strings.CutPrefix(s, "The following "); ok {
		if typ, _, thrown := strings.Cut(rest, " was thrown"); thrown {
			return mark{kind: messageBelow, typ: typ}
		}
	}
	if _, thrown, ok := strings.Cut(s, "Unhandled Exception: "); ok {
		return mark{kind: header, message: thrown}
	}
	if typ, _ := dartError(s); typ != "" {
		return mark{kind: header, message: s}
	}
	return mark{}
}

// dartErrors are the types of errors that Dart prints without their name.
var dartErrors = [...]struct{ begin, typ string }{
	{"Bad state: ", "StateError"}, {"Invalid argument(s): ", "ArgumentError"}, {"Invalid argument (", "ArgumentError"}, {"RangeError (", "RangeError"},
	{"Unsupported operation: ", "UnsupportedError"}, {"Concurrent modification", "ConcurrentModificationError"}, {"type '", "TypeError"},
	{"Null check operator used", "TypeError"}, {"Stack Overflow", "StackOverflowError"}, {"Out of Memory", "OutOfMemoryError"},
	{"TimeoutException after ", "TimeoutException"},
}

// dartError finds the type of an error by what it prints: "Bad state: No
// element", "Instance of 'Closed'", "PlatformException(io, no route, null)".
func dartError(s string) (typ, message string) {
	for _, one := range dartErrors {
		if rest, ok := strings.CutPrefix(s, one.begin); ok && strings.HasSuffix(one.begin, ": ") {
			return one.typ, rest
		} else if ok {
			_, rest, named := strings.Cut(rest, "): ")
			if !named || one.begin[len(one.begin)-1] != '(' {
				rest = s
			}
			return one.typ, rest
		}
	}
	if rest, ok := strings.CutPrefix(s, "Instance of '"); ok {
		return strings.TrimSuffix(rest, "'"), ""
	}
	if strings.Contains(s, "Failed assertion: ") {
		return "AssertionError", s
	}
	if end := strings.IndexAny(s, "([:"); end > 0 && isErrorName(strings.TrimSpace(s[:end])) {
		return strings.TrimSpace(s[:end]), strings.TrimSpace(s[end+1:])
	}
	return "", s
}

// dartSpan names an exception, if need be by its message.
func dartSpan(s *Span) {
	typ, message := dartError(s.Message)
	if s.Type = strings.TrimLeft(s.Type, "_"); s.Type == "" || s.Type == typ {
		s.Type, s.Message = typ, message
	}
}

var dartLibraries = wordSet(`flutter flutter_test flutter_riverpod riverpod bloc flutter_bloc provider http dio get async stack_trace test_api test
sentry firebase_core rxdart shelf grpc collection mobx go_router`)

func dartInApp(f *Frame) bool {
	name, ok := strings.CutPrefix(f.File, "package:")
	if !ok {
		return strings.HasPrefix(f.File, "file:") && !strings.Contains(f.File, "/.pub-cache/")
	}
	name, _, _ = strings.Cut(name, "/")
	return !dartLibraries[name]
}

// dartIdentity is file and function. Closures keep the function around them.
func dartIdentity(dst []byte, f *Frame) []byte {
	dst = append(append(dst, strings.TrimSuffix(baseName(f.File), ".dart")...), ':')
	name := strings.TrimPrefix(f.Function, "new ")
	for name != "" {
		part, rest, _ := strings.Cut(name, ".<anonymous closure>")
		part, _, _ = strings.Cut(part, ".<fn>")
		dst, name = append(dst, part...), rest
	}
	return dst
}
