package trace

import "strings"

// Dart and Flutter: "#0 Cart.total (package:shop/cart.dart:12:5)", on the web "package:shop/cart.dart 12:5 Cart.total".

var dartForms = []form{
	formOf("#$n $fn* ($file)").checked(isDartCall),
	formOf("$file^~.dart $line:$col $fn").checked(isDartCall), formOf("$file^~.dart $line:$col").checked(isDartCall),
}

func isDartCall(f *Frame) bool {
	place := f.File
	if file, line, column, ok := cutPosition(place); ok {
		f.File, f.Line, f.Column = file, line, column
	}
	return beginsWithAny(place, "package:", "dart:", "file:///", "org-dartlang") && (place[0] != 'f' || strings.Contains(place, ".dart"))
}

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

// dartErrors are how errors are printed, and the types of those that are printed without their name.
var dartErrors = [...]namedForm{
	{"StateError", formOf("Bad state: $msg")}, {"ArgumentError", formOf("Invalid argument(s): $msg")},
	{"ArgumentError", formOf("Invalid argument ($_): $msg")}, {"ArgumentError", formOf("Invalid argument ($_")},
	{"RangeError", formOf("RangeError ($_): $msg")}, {"RangeError", formOf("RangeError ($_")}, {"UnsupportedError", formOf("Unsupported operation: $msg")},
	{"ConcurrentModificationError", formOf("Concurrent modification$_")}, {"TypeError", formOf("type '$_")},
	{"TypeError", formOf("Null check operator used$_")}, {"StackOverflowError", formOf("Stack Overflow$_")},
	{"OutOfMemoryError", formOf("Out of Memory$_")}, {"TimeoutException", formOf("TimeoutException after$_")},
	{"", formOf("Instance of '$type'")}, {"AssertionError", formOf("$_Failed assertion: $_")},
}

// dartError finds the type of an error by what it prints: "Bad state: No element", "Instance of 'Closed'",
// "PlatformException(io, no route, null)".
func dartError(s string) (typ, message string) {
	for i := range dartErrors {
		one := &dartErrors[i]
		m := mark{typ: one.name}
		if !one.read(s, nil, &m) {
			continue
		}
		if m.message == "" && one.name != "" {
			m.message = s
		}
		return m.typ, m.message
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
