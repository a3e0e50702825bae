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

var dartIntros = []intro{{"Unhandled exception:", messageBelow, namesNothing}}

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

// Haskell, as HasCallStack prints it: "  total, called at
// src/Cart.hs:12:3 in shop-0.1:Cart".

func haskellFrame(line string) (Frame, bool) {
	name, place, ok := strings.Cut(line[leadingSpace(line):], ", called at ")
	if !ok {
		return Frame{}, false
	}
	place, module, _ := strings.Cut(place, " in ")
	file, n, column, ok := cutPosition(place)
	return Frame{Function: name, Module: module, File: file, Line: n, Column: column}, ok && strings.HasSuffix(file, "hs")
}

// haskellMark reads "shop: no such cart", above the calls.
func haskellMark(line string) mark {
	program, message, ok := strings.Cut(line, ": ")
	if !ok || strings.ContainsAny(program, " \t(") {
		return mark{}
	}
	return mark{kind: header, message: message}
}

func haskellInApp(f *Frame) bool {
	return !strings.HasPrefix(f.File, "libraries/") && !strings.HasPrefix(f.Module, "base-") && f.Function != "error" && f.Function != "undefined"
}

// haskellIdentity is module, without its package's version and hash, and function.
func haskellIdentity(dst []byte, f *Frame) []byte {
	_, module, _ := cutLast(f.Module, ":")
	return append(append(append(dst, module...), ':'), f.Function...)
}

// Julia: " [1] total(cart::Cart) at /app/cart.jl:12", and since 1.6 on two
// lines, " [1] total(cart::Cart)" and " @ Shop /app/cart.jl:12".

func juliaFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	if place, ok := strings.CutPrefix(s, "@ "); ok {
		module, path, _ := cutLast(strings.TrimSuffix(place, " [inlined]"), " ")
		file, n, ok := cutNumber(path)
		return Frame{Module: module, File: file, Line: n}, ok && strings.Contains(file, ".jl")
	}
	end := strings.IndexByte(s, ']')
	if !strings.HasPrefix(s, "[") || end < 2 || !allDigits(s[1:end]) {
		return Frame{}, false
	}
	call, place, placed := cutLast(s[end+1:], " at ")
	f := Frame{Function: juliaName(call)}
	if placed {
		file, n, ok := cutNumber(strings.TrimSuffix(place, " [inlined]"))
		if f.File, f.Line = file, n; !ok {
			return Frame{}, false
		}
	}
	return f, f.Function != "" && (placed || strings.HasSuffix(s, ")"))
}

// juliaName is the function without its arguments; "(::var"#3#4")(x)" has
// none, and "#total#5" is one with keywords.
func juliaName(s string) string {
	s = strings.TrimSpace(s)
	if open := strings.IndexByte(s, '('); open >= 0 {
		if s = s[:open]; s == "" {
			return "anonymous"
		}
	}
	if s = strings.TrimPrefix(s, "#"); strings.IndexByte(s, '#') > 0 {
		s, _, _ = strings.Cut(s, "#")
	}
	return strings.TrimSpace(s)
}

var juliaIntros = []intro{{"ERROR: ", header, namesBoth}, {"caused by: ", cause, namesBoth}}

var juliaLibraries = wordSet("Base Core Main.Base Test Distributed REPL Pkg")

func juliaInApp(f *Frame) bool {
	_, library := after(f.File, "/.julia/packages/", "/share/julia/")
	base := strings.HasPrefix(f.File, "./") && !strings.HasPrefix(f.Module, "Main")
	return !library && !juliaLibraries[f.Module] && !base
}

func juliaIdentity(dst []byte, f *Frame) []byte {
	if f.Function == "top-level scope" {
		return dst
	}
	return append(append(append(dst, strings.TrimSuffix(baseName(f.File), ".jl")...), ':'), f.Function...)
}

// Lua: "/app/cart.lua:12: in function 'total'", "[C]: in function 'error'",
// "...long/path/cart.lua:5: in function <...cart.lua:3>".

func luaFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	place, name, ok := strings.Cut(s, ": in ")
	if !ok {
		return Frame{}, false
	}
	f := Frame{File: place, Function: luaName(name)}
	if place == "[C]" {
		return f, true
	}
	f.File, f.Line, ok = cutNumber(place)
	return f, ok && (strings.HasSuffix(f.File, ".lua") || strings.HasPrefix(f.File, "["))
}

// luaName is the name in "function 'total'", "method 'total'", "upvalue
// 'total'", "function 'cart.total'", "main chunk".
func luaName(s string) string {
	open := strings.IndexAny(s, "'`")
	if open < 0 {
		if strings.HasPrefix(s, "main chunk") {
			return "main chunk"
		}
		return "" // "function <a.lua:3>"
	}
	name := strings.TrimRight(s[open+1:], "'")
	return name[strings.LastIndexAny(name, ".:")+1:]
}

// luaMark reads the first line, "lua: cart.lua:12: no such cart".
func luaMark(line string) mark {
	i := strings.Index(line, ".lua:")
	if i < 0 {
		return mark{}
	}
	place, message, ok := strings.Cut(line[i:], ": ")
	if _, _, numbered := cutNumber(place); !ok || !numbered {
		return mark{}
	}
	return mark{kind: header, message: message}
}

func luaInApp(f *Frame) bool {
	_, library := after(f.File, "/share/lua/", "/lualib/", "/luarocks/")
	return f.File != "[C]" && !library
}

// luaIdentity is file and function, since a function has the
// name by which it was called.
func luaIdentity(dst []byte, f *Frame) []byte {
	if f.File == "[C]" {
		return dst
	}
	return append(append(append(dst, strings.TrimSuffix(baseName(f.File), ".lua")...), ':'), f.Function...)
}

// Perl, as Carp prints it: "Shop::Cart::total(7, "x") called at /app/Cart.pm
// line 12". The place is that of the call.

func perlFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	call, place, ok := cutLast(s, " called at ")
	if !ok {
		return Frame{}, false
	}
	f, ok := perlPlace(place)
	f.Function = call
	if open := strings.IndexByte(call, '('); open > 0 {
		f.Function = call[:open]
	}
	return f, ok
}

// perlPlace reads "/app/Cart.pm line 12".
func perlPlace(s string) (Frame, bool) {
	file, n, ok := cutLast(s, " line ")
	n = strings.TrimSuffix(n, ".")
	return Frame{File: file, Line: number(n)}, ok && allDigits(n) && file != ""
}

// perlMark reads the first line, "no such cart at /app/Cart.pm line 12.",
// whose place is that of the innermost call.
func perlMark(line string) mark {
	message, place, ok := cutLast(strings.TrimSpace(line), " at ")
	if _, isPlace := perlPlace(place); !ok || !isPlace {
		return mark{}
	}
	return mark{kind: header, message: message}
}

func perlInApp(f *Frame) bool {
	_, library := after(f.File, "/perl5/", "/share/perl/", "/lib/perl/", "/site_perl/", "/vendor_perl/", "/local/lib/")
	return !library || strings.HasPrefix(f.Function, "main::")
}

func perlIdentity(dst []byte, f *Frame) []byte {
	if strings.HasPrefix(f.Function, "eval ") || f.Function == "require" || strings.HasPrefix(f.Function, "Try::Tiny::") {
		return dst
	}
	return append(dst, f.Function...)
}

// PowerShell: "at Get-Cart, C:\shop\cart.ps1: line 12", and of
// an error itself "At C:\shop\cart.ps1:12 char:5". The words
// are translated, and French has a blank before each colon.

func powershellFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	if strings.IndexByte(s, ',') < 0 && strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, '/') < 0 {
		return Frame{}, false
	}
	if f, ok := powershellPlace(s); ok {
		return f, true
	}
	s, ok := afterAt(s)
	if !ok {
		return Frame{}, false
	}
	name, place, ok := strings.Cut(s, ", ")
	place, n, numbered := cutLast(place, " ")
	file, _, placed := cutLast(place, ": ")
	if !ok || !numbered || !placed || !allDigits(n) {
		return Frame{}, false
	}
	return Frame{Function: name, File: trimEnd(file), Line: number(n)}, name != ""
}

// powershellPlace reads "At C:\shop\cart.ps1:12 char:5" by
// the script's extension, its line and the last number.
func powershellPlace(s string) (Frame, bool) {
	script, rest, ok := strings.Cut(s, ".ps1:")
	before := strings.TrimRight(rest, "0123456789")
	column := len(before) < len(rest) && strings.HasSuffix(trimEnd(before), ":")
	begin := strings.Index(script, `:\`) - 1
	if begin < 0 {
		begin = strings.Index(script, " /") + 1
	}
	if !ok || !column || begin < 1 {
		return Frame{}, false
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	return Frame{File: s[begin : len(script)+len(".ps1")], Line: number(rest[:digits])}, digits > 0
}

// powershellMark reads an error's category: "+ CategoryInfo :
// ObjectNotFound: (C:\a:String) [Get-Item], ItemNotFoundException".
func powershellMark(line string) mark {
	s := strings.TrimSpace(line)
	if _, typ, ok := cutLast(s, "], "); ok && strings.HasPrefix(s, "+ CategoryInfo") {
		return mark{kind: trailer, typ: typ}
	}
	return classHeader(s)
}

func powershellInApp(f *Frame) bool {
	_, module := after(f.File, "/WindowsPowerShell/", "/PowerShell/Modules/", "/powershell/Modules/")
	return !module
}

// powershellIdentity is file and function.
// Typed commands have no file, blocks no name.
func powershellIdentity(dst []byte, f *Frame) []byte {
	if strings.HasPrefix(f.File, "<") { // "<No file>"
		return dst
	}
	name, _, _ := strings.Cut(f.Function, "<") // "Get-Cart<Process>"
	return append(append(appendFileName(dst, f.File), ':'), name...)
}

// R, as traceback prints it, the innermost call first: "3:
// total(cart) at cart.R#12".

func rFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	n, call, ok := strings.Cut(s, ": ")
	if !ok || !allDigits(n) {
		return Frame{}, false
	}
	f := Frame{}
	if before, place, placed := cutLast(call, " at "); placed {
		file, at, numbered := strings.Cut(place, "#")
		if numbered && allDigits(at) {
			f.File, f.Line, call = file, number(at), before
		}
	}
	open := strings.IndexByte(call, '(')
	if open < 1 || !strings.HasSuffix(call, ")") || strings.ContainsAny(call[:open], " =<") {
		return Frame{}, false
	}
	f.Function = call[:open]
	return f, true
}

func rMark(line string) mark {
	if _, message, ok := strings.Cut(line, " : "); ok && strings.HasPrefix(line, "Error in ") {
		return mark{kind: header, message: message}
	}
	return mark{}
}

// rCore are functions that raise errors or make calls.
var rCore = wordSet(`stop stopifnot warning eval evalq withCallingHandlers tryCatch tryCatchList tryCatchOne doTryCatch try source withVisible
signalCondition do.call`)

func rInApp(f *Frame) bool { return !rCore[f.Function] && !strings.Contains(f.Function, "::") }

func rIdentity(dst []byte, f *Frame) []byte { return append(dst, f.Function...) }
