package trace

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirlog/weir/grouping/trace/words"
)

// JavaScript in three dialects. V8: "at async fn [as alias] (url:1:2)"
// and "at url:1:2"; Firefox and Safari: "fn@url:1:2", and for
// evaluated code "fn@url line 3 > eval:1:2".

func javascriptFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	if strings.HasPrefix(s, "at ") {
		return v8Frame(strings.TrimSpace(s[3:]))
	}
	return geckoFrame(s)
}

func v8Frame(s string) (Frame, bool) {
	if !strings.HasSuffix(s, ")") {
		file, line, column, ok := cutPosition(strings.TrimPrefix(s, "async "))
		if !ok || column == 0 || file == "" {
			return Frame{}, false
		}
		return Frame{File: file, Line: line, Column: column}, true
	}
	open := strings.Index(s, " (")
	if open < 1 {
		return joinedFrame(s)
	}
	f := Frame{Function: v8Name(s[:open])}
	if f.Function == "" || isDigit(f.Function[0]) { // Kotlin numbers its calls
		return Frame{}, false
	}
	place := strings.TrimPrefix(s[open+2:len(s)-1], "address at ") // as Hermes has it
	if file, ok := wasmFile(place); ok {
		f.File = file
		return f, true
	}
	if file, line, column, ok := cutPosition(withoutCounterOf(place)); ok {
		f.File, f.Line, f.Column = withoutOrigin(file), line, column
		return f, column > 0 || strings.Contains(file, "://") || strings.HasSuffix(file, ".sol") // Hardhat has no columns
	}
	f.File = place
	return f, place == "<anonymous>" || place == "native" || strings.HasPrefix(place, "index ") || strings.HasPrefix(place, "wasm://")
}

// joinedFrame reads "total(Code:12:3)" of Google's Apps Script.
func joinedFrame(s string) (Frame, bool) {
	name, place, ok := strings.Cut(strings.TrimSuffix(s, ")"), "(")
	file, line, column, placed := cutPosition(place)
	return Frame{Function: name, File: file, Line: line, Column: column}, ok && placed && name != "" && file != "" && (column > 0 || strings.Contains(file, "://"))
}

// withoutCounterOf drops the "(428)" that k6 prints after a place.
func withoutCounterOf(place string) string {
	if before, n, ok := cutLast(place, "("); ok && allDigits(strings.TrimSuffix(n, ")")) {
		return before
	}
	return place
}

// v8Name drops what V8 adds to a function's name, such as
// that it resumes later. Other engines do not print it.
func v8Name(s string) string {
	s = strings.TrimPrefix(s, "new ")
	if i := strings.Index(s, " [as "); i > 0 {
		s = s[:i]
	}
	return s
}

// asyncCall begins a function that awaited the call above.
const asyncCall = "async "

// evalCode is the file of code that was evaluated. Not all engines print
// where: Chrome has "eval at f (url:1:2), <anonymous>:1:2", Firefox "url
// line 3 > eval:1:2", Edge "eval code:1:2".
const evalCode = "eval code"

func withoutOrigin(file string) string {
	if strings.HasPrefix(file, "eval at ") || strings.Contains(file, " > eval") || strings.Contains(file, " > Function") {
		return evalCode
	}
	return file
}

// wasmFile is the module in "https://a.io/shop.wasm:wasm-function[12]:0x1a2b".
func wasmFile(place string) (file string, ok bool) {
	file, _, ok = strings.Cut(place, ":wasm-function[")
	return file, ok
}

func geckoFrame(s string) (Frame, bool) {
	if call, ok := wasmFile(s); ok {
		at := max(0, geckoAt(call))
		return Frame{Function: call[:at], File: strings.TrimPrefix(call[at:], "@")}, true
	}
	file, line, column, ok := cutPosition(s)
	if !ok {
		return safariBare(s)
	}
	at := geckoAt(file)
	if at < 0 {
		isURL := strings.Contains(file, "://") && strings.IndexByte(file, ' ') < 0
		return Frame{File: file, Line: line, Column: column}, isURL && column > 0 // Node prints where it threw without a column
	}
	f := Frame{Function: file[:at], File: withoutOrigin(file[at+1:]), Line: line, Column: column}
	if i := strings.LastIndexByte(f.Function, '*'); i > 0 { // "async*f", "setTimeout handler*f"
		if !isAlpha(f.Function[0]) || strings.Count(f.Function[:i], " ") > 1 {
			return Frame{}, false
		}
		f.Function = asyncCall + f.Function[i+1:]
	}
	return f, isGeckoName(f.Function) && column > 0 && f.File != "" && (f.File == evalCode || strings.IndexByte(f.File, ' ') < 0)
}

// geckoAt is the index of the "@" between name and place: the
// one before the scheme, as names and URLs may have others.
func geckoAt(s string) int {
	if scheme := strings.Index(s, "://"); scheme > 0 {
		return strings.LastIndexByte(s[:scheme], '@')
	}
	return strings.LastIndexByte(s, '@')
}

// safariBare is a frame without position: "fn@[native code]", "eval code@".
func safariBare(s string) (Frame, bool) {
	name, ok := strings.CutSuffix(s, "@[native code]")
	return Frame{Function: name, File: "[native code]"}, ok && isGeckoName(name)
}

// isGeckoName distinguishes "global code" and
// "get total" from a text that holds an "@".
func isGeckoName(name string) bool {
	return strings.IndexByte(name, ' ') < 0 || strings.Count(name, " ") == 1 && beginsWithAny(name, geckoWords)
}

var geckoWords = strings.Fields("global module eval async get set static")

var javascriptMarks = []markForm{
	{errorEnd, formOf("The above error occurred in $_")}, // by React; components follow
	{cause, formOf("[cause]: $error")}, {cause, formOf("Caused by: $error")}, {cause, formOf("caused by: $error")},
}

func javascriptMark(s string) mark { return classHeader(withoutIntro(s)) }

// withoutIntro drops what consoles print before an error, "✘ [ERROR] Uncaught
// (in promise) ", and a logger's fields before that: `level=error msg="`.
func withoutIntro(s string) string {
	if fields, logged, ok := strings.Cut(s, `msg="`); ok && strings.Contains(fields, "level=") {
		s = logged
	}
	for len(s) > 0 && s[0] >= utf8.RuneSelf {
		_, s, _ = strings.Cut(s, " ")
	}
	s = withoutBegins(s, "[ERROR] ", "error: ", "Uncaught ")
	if strings.HasPrefix(s, "(in ") {
		_, s, _ = strings.Cut(s, ") ")
	}
	return s
}

// javascriptPlaces read the place that Node
// prints above a syntax error: "/srv/a.js:3".
var javascriptPlaces = []form{formOf("$place~js|ts|sx").checked(func(f *Frame) bool {
	_, _, column := cutNumber(f.File)
	name := baseName(f.File)
	return !column && len(name) < len(f.File) && strings.IndexByte(name, ' ') < 0
})}

func javascriptInApp(f *Frame) bool {
	switch {
	case f.File == "" || f.File == evalCode || f.File[0] == '<' || f.File[0] == '[' || f.File == "native" || strings.HasPrefix(f.File, "index "):
		return false
	case beginsWithAny(f.File, javascriptRuntime) || nodeCore[f.File]:
		return false
	case f.Function == "__webpack_require__" || strings.Contains(f.File, "node_modules") || strings.Contains(f.File, "-extension://"):
		return false
	case strings.Contains(f.File, "webpack/") && !strings.Contains(f.File, "/src/"):
		return false
	}
	return !javascriptLibrary(baseName(withoutQuery(f.File)))
}

// javascriptRuntime is how places in engines and runtimes begin.
var javascriptRuntime = strings.Fields("node: internal/ ext: deno: bun: https://deno.land/")

// nodeCore are files of Node before release 16.
var nodeCore = wordSet(words.NodeCore)

// javascriptLibrary recognizes libraries that pages load separately.
func javascriptLibrary(file string) bool {
	return beginsWithAny(file, pageLibraries) || !strings.ContainsAny(file, "./") && strings.HasPrefix(file, "events")
}

var pageLibraries = strings.Fields("react-dom react. jquery angular vue. zone.js lodash polyfill vendor framework-")

// javascriptIdentity is the file without hashes and the function
// without its receiver, which not all engines print. Minified names
// are left out. In browsers only named calls count: engines name
// anonymous functions differently, and some print awaiting calls.
func javascriptIdentity(dst []byte, f *Frame) []byte {
	start := len(dst)
	called, async := strings.CutPrefix(f.Function, asyncCall)
	if awaitHelpers[called] || strings.HasPrefix(called, "__webpack_") {
		return dst
	}
	if pkg, ok := after(f.File, "/node_modules/"); ok {
		dst = appendPackage(dst, pkg)
	}
	path := withoutQuery(f.File)
	name := len(dst)
	dst = appendScriptFile(dst, path)
	file := len(dst)
	dst = append(dst, ':')
	if isWasm(f) {
		return appendNative(dst, withoutRustHash(withoutWasmModule(called)))
	}
	remote := isRemote(path)
	if !remote || !async {
		dst = appendScriptName(dst, called, isBuilt(baseName(path), file-name) || remote)
	}
	if len(dst) == file+1 && !hasStem(dst[start:file]) {
		return dst[:start]
	}
	return dst
}

// awaitHelpers are functions by which TypeScript and Babel await where
// the runtime can't. Whether they are there depends on the runtime.
var (
	awaitHelpers = wordSet("__awaiter __generator __asyncGenerator asyncGeneratorStep _asyncToGenerator _next _throw fulfilled rejected step Object.next tryCatch")
)

// isWasm reports whether a function is the program's, compiled to WebAssembly.
func isWasm(f *Frame) bool {
	return strings.HasPrefix(f.File, "wasm://") || strings.HasSuffix(withoutQuery(f.File), ".wasm")
}

// withoutWasmModule drops the module that V8 prints before a function:
// "shop.wasm.total".
func withoutWasmModule(name string) string {
	if _, rest, ok := strings.Cut(name, ".wasm."); ok {
		return rest
	}
	return name
}

// isRemote reports whether a browser loaded the script.
func isRemote(path string) bool {
	return strings.Contains(path, "://") && !strings.HasPrefix(path, "file:")
}

// appendScriptFile appends a script's name without
// hashes; nothing for a page that holds scripts.
func appendScriptFile(dst []byte, path string) []byte {
	name := baseName(path)
	if stem, extension, ok := cutChunkHash(name); ok {
		return append(append(append(dst, stem...), '.'), extension...)
	}
	dot := strings.LastIndexByte(name, '.')
	switch {
	case isRemote(path) && dot < 0, isPageScript(name):
		return dst
	case isRemote(path):
		return append(appendFileName(dst, withoutBuildHash(name[:dot])), name[dot:]...)
	case dot > chunkHash && (name[dot-chunkHash-1] == '-' || name[dot-chunkHash-1] == '.') && isChunkHash(name[dot-chunkHash:dot]):
		return append(appendFileName(dst, name[:dot-chunkHash-1]), name[dot:]...)
	}
	return appendFileName(dst, path)
}

// isPageScript recognizes Chrome's names of scripts within
// a page, "(index)", and of those without a name, "VM123".
func isPageScript(name string) bool {
	number, ok := strings.CutPrefix(name, "VM")
	return name == "(index)" || ok && allDigits(number)
}

// chunkHash is the length of the hash that Vite,
// Rollup and esbuild put before the extension.
const chunkHash = 8

// isChunkHash recognizes letters, digits, "-" and "_" in a file that
// did not come over the network: few of these are built.
func isChunkHash(s string) bool {
	digits, upper, turns := 0, 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isDigit(c):
			digits++
		case isUpper(c):
			upper++
		case !isLower(c) && c != '_' && c != '-':
			return false
		}
		if i > 0 && isLower(s[i]) != isLower(s[i-1]) {
			turns++
		}
	}
	if digits > 0 && !allDigits(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyz_-ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
		return upper > 0 || turns > 2
	}
	return turns > 3 || turns > 2 && digits > 0 && upper > 1
}

// appendPackage appends the name of an npm package, with its scope.
func appendPackage(dst []byte, path string) []byte {
	name, rest, _ := strings.Cut(path, "/")
	if strings.HasPrefix(name, "@") {
		inner, _, _ := strings.Cut(rest, "/")
		dst = append(append(dst, name...), '/')
		name = inner
	}
	return append(append(dst, name...), '/')
}

// isBuilt reports whether a bundler wrote the file, so that short
// names are minified. left is the length of its name without hashes.
func isBuilt(name string, left int) bool {
	return left < len(name) || strings.Contains(name, ".min.") || strings.Contains(name, "bundle") || strings.Contains(name, "chunk")
}

// appendScriptName appends the last part of "Object.Foo.bar", which every
// engine prints; nothing for "bar/<", an anonymous function in bar.
func appendScriptName(dst []byte, name string, built bool) []byte {
	if strings.Contains(name, "./") { // the function that webpack makes of a file: "Module../src/cart.js"
		return dst
	}
	last := name[strings.LastIndexAny(name, "./")+1:]
	last = withoutBegins(last, "get ", "set ", "static ", "async ")
	if !isScriptName(last) || built && len(last) < 3 {
		return dst
	}
	if stem, ok := strings.CutSuffix(last, "_k$"); ok { // Kotlin tells overloads apart by a hash
		last, _, _ = cutLast(stem, "_")
	}
	if strings.HasSuffix(last, "_listener") { // by Angular, which counts them
		return appendWithoutDigits(dst, last)
	}
	return append(dst, last...)
}

func isScriptName(part string) bool {
	if strings.HasPrefix(part, "_callee") && strings.HasSuffix(part, "$") { // by Babel, which counts them
		return false
	}
	return part != "" && part[0] != '<' && !scriptWords[part] && !slices.Contains(codeWithoutName, part)
}

var (
	scriptWords     = wordSet("Object Function Module module exports prototype anonymous eval window self")
	codeWithoutName = []string{"global code", "eval code", "module code", "Anonymous function", "Global code"}
)

// javascriptEngine are the errors that engines throw.
var javascriptEngine = wordSet("EvalError InternalError RangeError ReferenceError SyntaxError TypeError URIError")
