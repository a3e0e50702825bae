package trace

import (
	"strings"
	"unicode/utf8"
)

// JavaScript in three dialects. V8: "at async fn [as alias] (url:1:2)" and "at url:1:2"; Firefox and Safari:
// "fn@url:1:2", and for evaluated code "fn@url line 3 > eval:1:2".

func javascriptFrame(l line, f *Frame) bool {
	*f = Frame{}
	s := withoutIndent(l.string)
	if call, ok := strings.CutPrefix(s, "at "); ok {
		return v8Frame(strings.TrimSpace(call), f)
	}
	return (l.has.has('@') || strings.Contains(s, "://")) && geckoFrame(s, f)
}

func v8Frame(s string, f *Frame) bool {
	call, ok := strings.CutSuffix(s, ")")
	if !ok {
		return scriptPlace(strings.TrimPrefix(s, asyncCall), f)
	}
	open := strings.Index(call, " (")
	if open < 1 { // "total(Code:12:3)" of Google's Apps Script
		open = strings.IndexByte(call, '(')
	}
	if open < 1 || isDigit(call[0]) { // Kotlin numbers its calls
		return false
	}
	f.Function, _, _ = strings.Cut(strings.TrimPrefix(call[:open], "new "), " [as ")
	place := strings.TrimPrefix(call[open:], " ")[1:]
	if before, n, ok := cutLast(place, "("); ok && allDigits(strings.TrimSuffix(n, ")")) { // by k6
		place = before
	}
	return scriptPlace(strings.TrimPrefix(place, "address at "), f) // by Hermes
}

// scriptPlace reads "url:1:2", also without a column behind a function's name, and what stands for other places.
func scriptPlace(place string, f *Frame) (ok bool) {
	if f.File, _, ok = strings.Cut(place, ":wasm-function["); ok {
		return true
	}
	if f.File, f.Line, f.Column, ok = cutPosition(place); !ok {
		return f.Function != "" && (place == "<anonymous>" || place == "native" || beginsWithAny(place, "index ", "wasm://"))
	}
	called := f.Function != "" && (strings.Contains(f.File, "://") || strings.HasSuffix(f.File, ".sol")) // Hardhat has no columns
	if containsAny(f.File, evaluated) {
		f.File = evalCode
	}
	return f.File != "" && (f.Column > 0 || called)
}

const (
	// evalCode is the file of code that was evaluated. Not all engines print where: Chrome has
	// "eval at f (url:1:2), <anonymous>:1:2", Firefox "url line 3 > eval:1:2", Edge "eval code:1:2".
	evalCode  = "eval code"
	asyncCall = "async " // begins a function that awaited the call above
)

var (
	evaluated        = partsOf("eval at ", " > eval", " > Function")
	builtNames       = partsOf(".min.", "bundle", "chunk") // of scripts that a bundler wrote, as are those with a hash in their name
	scriptBreaks     = marksOf("./")                       // in front of the last part of a name
	scriptWords      = wordSet("Object Function Module module exports prototype anonymous eval window self")
	javascriptEngine = wordSet("EvalError InternalError RangeError ReferenceError SyntaxError TypeError URIError") // the errors that engines throw
)

func geckoFrame(s string, f *Frame) bool {
	if name, ok := strings.CutSuffix(s, "@[native code]"); ok {
		f.Function, f.File = name, "[native code]"
		return isGeckoName(name)
	}
	before, _, scheme := strings.Cut(s, "://")
	at := strings.LastIndexByte(before, '@') // names and URLs may have others
	f.Function = s[:max(at, 0)]
	if at < 0 && !scheme || !scriptPlace(s[at+1:], f) || f.Column == 0 && !isWasm(withoutQuery(f.File)) { // Node prints where it threw without a column
		return false
	}
	return isGeckoName(f.Function) && (f.File == evalCode || strings.IndexByte(f.File, ' ') < 0)
}

// isGeckoName distinguishes "global code" and "get total" from a text that holds an "@".
func isGeckoName(name string) bool {
	return strings.IndexByte(name, ' ') < 0 || strings.Count(name, " ") == 1 &&
		(beginsWithAny(name, "global", "module", "eval", "async", "get", "set", "static") || strings.IndexByte(name, '*') > 0)
}

// cutAsync takes off that a function was resumed: "async f", "async*f", "setTimeout handler*f".
func cutAsync(name string) (called string, async bool) {
	if i := strings.LastIndexByte(name, '*'); i > 0 {
		return name[i+1:], true
	}
	return strings.CutPrefix(name, asyncCall)
}

var javascriptMarks = []markForm{
	{errorEnd, formOf("The above error occurred in $_")}, // by React; components follow
	{cause, formOf("[cause]: $error")}, {cause, formOf("Caused by: $error")}, {cause, formOf("caused by: $error")},
	{header, formOf("$type^~Error [$_^]: $msg")}, {header, formOf("$type^ [$_~Error]: $msg")}, // by Node, with a code or a class
}

func javascriptMark(l line) mark { return classHeader(withoutIntro(l.string)) }

// withoutIntro drops what consoles print before an error, "✘ [ERROR] Uncaught (in promise) ", and a logger's fields
// before that: `level=error msg="`.
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

// javascriptPlaces read the place that Node prints above a syntax error: "/srv/a.js:3".
var javascriptPlaces = []form{formOf("$place~js|ts|sx").checked(func(f *Frame) bool {
	_, _, column := cutNumber(f.File)
	name := baseName(f.File)
	return !column && len(name) < len(f.File) && strings.IndexByte(name, ' ') < 0
})}

func javascriptInApp(f *Frame) bool {
	script := baseName(withoutQuery(f.File)) // of libraries that pages load separately:
	return !inEngine(f.File) && !containsAny(f.File, scriptLibraries) &&
		!beginsWithAny(script, "react-dom", "react.", "jquery", "angular", "vue.", "zone.js", "lodash", "polyfill", "vendor", "framework-") &&
		f.Function != "__webpack_require__"
}

// inEngine reports whether a call is in no file that somebody wrote for the program.
func inEngine(file string) bool {
	return file == "" || file == evalCode || file == "native" || file[0] == '<' || file[0] == '[' || beginsWithAny(file, javascriptRuntime...) ||
		len(file) <= len("_stream_readable.js") && nodeCore[file]
}

var (
	javascriptRuntime = append(strings.Fields("node: internal/ ext: deno: bun: https://deno.land/"), "index ")
	scriptLibraries   = partsOf("node_modules", "-extension://", "webpack/bootstrap", "webpack/runtime", "webpack/startup", "webpack/universalModuleDefinition")
)

// javascriptIdentity is the file without hashes and the function without its receiver, which not all engines print.
// Minified names are left out. In browsers only named calls count: engines name anonymous functions differently, and
// some print awaiting calls.
func javascriptIdentity(dst []byte, f *Frame) []byte {
	start := len(dst)
	called, async := cutAsync(f.Function)
	if awaitHelpers[called] || strings.HasPrefix(called, "__webpack_") {
		return dst
	}
	if pkg, ok := after(f.File, "/node_modules/"); ok && pkg != "" {
		end := cutAt(pkg, 0, '/')
		if pkg[0] == '@' && end < len(pkg) { // a scope
			end = cutAt(pkg, end+1, '/')
		}
		dst = append(append(dst, pkg[:end]...), '/')
	}
	path := withoutQuery(f.File)
	name, script, remote := len(dst), baseName(path), isRemote(path)
	dst = appendScriptFile(dst, path, remote)
	file := len(dst)
	dst = append(dst, ':')
	if isWasm(path) {
		if _, inModule, ok := strings.Cut(called, ".wasm."); ok { // V8 prints "shop.wasm.total"
			called = inModule
		}
		return appendNative(dst, withoutRustHash(called))
	}
	if !remote || !async {
		dst = appendScriptName(dst, called, remote || file-name < len(script) || containsAny(script, builtNames))
	}
	if len(dst) == file+1 && (file == start || dst[start] == '.') {
		return dst[:start]
	}
	return dst
}

// awaitHelpers are functions by which TypeScript and Babel await where the runtime can't.
var awaitHelpers = wordSet(`__awaiter __generator __asyncGenerator asyncGeneratorStep _asyncToGenerator _next _throw fulfilled rejected step
	Object.next tryCatch`)

// isWasm reports whether a function is the program's, compiled to WebAssembly.
func isWasm(path string) bool {
	return strings.HasPrefix(path, "wasm://") || strings.HasSuffix(path, ".wasm")
}

// isRemote reports whether a browser loaded the script.
func isRemote(path string) bool {
	return strings.Contains(path, "://") && !strings.HasPrefix(path, "file:")
}

// appendScriptFile appends a script's name without hashes; nothing for a page that holds scripts.
func appendScriptFile(dst []byte, path string, remote bool) []byte {
	name := baseName(path)
	stem, extension, _ := strings.Cut(name, "._.") // "cart_tsx_3f2a1b9c._.js" of Turbopack
	if stem, hash, _ := cutLast(stem, "_"); extension != "" && isHexWord(hash, minPlainHexID) {
		return append(append(append(dst, strings.TrimRight(stem, "_")...), '.'), extension...)
	}
	dot := strings.LastIndexByte(name, '.')
	switch {
	case remote && dot < 0, name == "(index)", strings.HasPrefix(name, "VM") && allDigits(name[len("VM"):]):
		return dst // Chrome's names of scripts within a page, and of those without a name
	case remote:
		return append(appendFileName(dst, withoutBuildHash(name[:dot])), name[dot:]...)
	case dot > chunkHash && (name[dot-chunkHash-1] == '-' || name[dot-chunkHash-1] == '.') && isBuildHash(name[dot-chunkHash:dot]):
		return append(appendFileName(dst, name[:dot-chunkHash-1]), name[dot:]...)
	}
	return appendFileName(dst, path)
}

// appendScriptName appends the last part of "Object.Foo.bar", which every engine prints; nothing for "bar/<", an
// anonymous function in bar, nor for short names in built scripts, which are minified.
func appendScriptName(dst []byte, name string, built bool) []byte {
	if strings.Contains(name, "./") { // the function that webpack makes of a file: "Module../src/cart.js"
		return dst
	}
	last := scriptBreaks.afterLast(name)
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
	counted := strings.HasPrefix(part, "_callee") && strings.HasSuffix(part, "$") // by Babel
	return part != "" && part[0] != '<' && !counted && !scriptWords[part] && !strings.HasSuffix(part, " code") && part != "Anonymous function"
}
