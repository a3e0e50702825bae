package trace

import (
	"strings"

	"github.com/weirlog/weir/grouping/trace/words"
)

// Dart and Flutter: "#0 Cart.total (package:shop/cart.dart:12:5)", on the web
// "package:shop/cart.dart 12:5 Cart.total".

var dartForms = []form{
	formOf("#$n $fn* ($file)").checked(func(f *Frame) bool {
		place := f.File
		f.File, f.Line, f.Column, _ = cutPosition(place)
		return isDartPlace(place)
	}),
	formOf("$file^~.dart $line:$col $fn").checked(func(f *Frame) bool { return isDartPlace(f.File) }),
	formOf("$file^~.dart $line:$col").checked(func(f *Frame) bool { return isDartPlace(f.File) }),
}

func isDartPlace(s string) bool {
	return strings.HasPrefix(s, "package:") || strings.HasPrefix(s, "dart:") || strings.HasPrefix(s, "file:///") && strings.Contains(s, ".dart") ||
		strings.HasPrefix(s, "org-dartlang")
}

// dartMarks read also what Flutter prints above the message and the trace.
var dartMarks = []markForm{
	{messageBelow, formOf("Unhandled exception:$_")}, {messageBelow, formOf("The following $type was thrown$_")},
	{header, formOf("$_Unhandled Exception: $msg")},
}

// dartMark reads an error that is printed alone.
func dartMark(s string) mark {
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

var dartLibraries = wordSet(words.DartLibraries)

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
