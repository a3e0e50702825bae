package trace

import "strings"

// Dart and Flutter: "#0 Cart.total (package:shop/cart.dart:12:5)", on the web "package:shop/cart.dart 12:5 Cart.total".

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
	return beginsWithAny(s, dartPlaces) && (s[0] != 'f' || strings.Contains(s, ".dart"))
}

var dartPlaces = strings.Fields("package: dart: file:/// org-dartlang")

// dartMarks read also what Flutter prints above the message and the trace.
var dartMarks = []markForm{
	{messageBelow, formOf("Unhandled exception:$_")}, {messageBelow, formOf("The following $type was thrown$_")},
	{header, formOf("$_Unhandled Exception: $msg")},
}

// dartMark reads an error that is printed alone.
func dartMark(l line) mark {
	if typ, _ := dartError(l.string); typ != "" {
		return mark{kind: header, message: l.string}
	}
	return mark{}
}

// dartErrors are the types of errors that Dart prints without their name.
var dartErrors = [...]struct{ begin, typ string }{
	{"Bad state: ", "StateError"}, {"Invalid argument(s): ", "ArgumentError"}, {"Invalid argument (", "ArgumentError"}, {"RangeError (", "RangeError"},
	{"Unsupported operation: ", "UnsupportedError"}, {"Concurrent modification", "ConcurrentModificationError"}, {"type '", "TypeError"},
	{"Null check operator used", "TypeError"}, {"Stack Overflow", "StackOverflowError"}, {"Out of Memory", "OutOfMemoryError"},
	{"TimeoutException after", "TimeoutException"},
}

// dartError finds the type of an error by what it prints: "Bad state: No element", "Instance of 'Closed'",
// "PlatformException(io, no route, null)".
func dartError(s string) (typ, message string) {
	for _, one := range dartErrors {
		rest, ok := strings.CutPrefix(s, one.begin)
		if !ok {
			continue
		}
		switch one.begin[len(one.begin)-1] {
		case ' ':
			return one.typ, rest
		case '(':
			if _, rest, named := strings.Cut(rest, "): "); named {
				return one.typ, rest
			}
		}
		return one.typ, s
	}
	if name, ok := strings.CutPrefix(s, "Instance of '"); ok {
		return strings.TrimSuffix(name, "'"), ""
	}
	if strings.Contains(s, "Failed assertion: ") {
		return "AssertionError", s
	}
	end := max(strings.IndexAny(s, "([:"), 0)
	if name := strings.TrimSpace(s[:end]); isErrorName(name) {
		return name, strings.TrimSpace(s[end+1:])
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

func dartInApp(f *Frame) bool {
	if name, ok := strings.CutPrefix(f.File, "package:"); ok {
		return !dartLibraries[name[:cutAt(name, 0, '/')]]
	}
	return strings.HasPrefix(f.File, "file:") && !strings.Contains(f.File, "/.pub-cache/")
}

// dartIdentity is file and function. Closures keep the function around them.
func dartIdentity(dst []byte, f *Frame) []byte {
	name, _, _ := strings.Cut(strings.TrimPrefix(f.Function, "new "), ".<") // "total.<anonymous closure>", "total.<fn>.<fn>"
	return appendCall(dst, fileStem(f, ".dart"), name)
}
