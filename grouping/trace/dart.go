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

// dartMark reads "The following _TypeError was thrown building
// CartView:", which Flutter prints above the message and the trace.
func dartMark(line string) mark {
	s := strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(s, "The following "); ok {
		if typ, _, thrown := strings.Cut(rest, " was thrown"); thrown {
			return mark{kind: messageBelow, typ: typ}
		}
	}
	return classHeader(s)
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
