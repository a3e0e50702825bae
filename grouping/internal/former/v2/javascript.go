package v2

import (
	"strings"

	"github.com/weirlog/weir/grouping"
)

// JavaScript in three dialects. V8: "at async fn [as alias] (url:1:2)"
// and "at url:1:2"; Firefox and Safari: "fn@url:1:2", and for
// evaluated code "fn@url line 3 > eval:1:2".

func javascriptFrame(line string) (grouping.Frame, bool) {
	s := line[leadingSpace(line):]
	if strings.HasPrefix(s, "at ") {
		return v8Frame(strings.TrimSpace(s[3:]))
	}
	return geckoFrame(s)
}

func v8Frame(s string) (grouping.Frame, bool) {
	if !strings.HasSuffix(s, ")") {
		file, line, column, ok := cutPosition(strings.TrimPrefix(s, "async "))
		if !ok || column == 0 || file == "" {
			return grouping.Frame{}, false
		}
		return grouping.Frame{File: file, Line: line, Column: column}, true
	}
	open := strings.Index(s, " (")
	if open < 1 {
		return grouping.Frame{}, false
	}
	f := grouping.Frame{Function: v8Name(s[:open])}
	place := s[open+2 : len(s)-1]
	if strings.HasPrefix(place, "eval at ") {
		place = evalOrigin(place)
	}
	if file, line, column, ok := cutPosition(place); ok {
		f.File, f.Line, f.Column = file, line, column
		return f, column > 0
	}
	f.File = place
	return f, place == "<anonymous>" || place == "native" || strings.HasPrefix(place, "index ") || strings.HasPrefix(place, "wasm://")
}

// v8Name drops what V8 says about a call besides its name.
func v8Name(s string) string {
	s = strings.TrimPrefix(s, "async ")
	s = strings.TrimPrefix(s, "new ")
	if i := strings.Index(s, " [as "); i > 0 {
		s = s[:i]
	}
	return s
}

// evalOrigin finds the file that called eval in "eval at f (eval
// at g (url:1:2), <anonymous>:1:2)".
func evalOrigin(place string) string {
	if i := strings.LastIndex(place, " ("); i > 0 {
		place = place[i+2:]
	}
	if i := strings.IndexByte(place, ')'); i > 0 {
		place = place[:i]
	}
	return place
}

func geckoFrame(s string) (grouping.Frame, bool) {
	file, line, column, ok := cutPosition(s)
	if !ok {
		return safariBare(s)
	}
	at := geckoAt(file)
	if at < 0 {
		isURL := strings.Contains(file, "://") && strings.IndexByte(file, ' ') < 0
		return grouping.Frame{File: file, Line: line, Column: column}, isURL
	}
	f := grouping.Frame{Function: file[:at], File: file[at+1:], Line: line, Column: column}
	if i := strings.Index(f.File, " line "); i > 0 {
		f.File = f.File[:i]
	}
	if i := strings.LastIndexByte(f.Function, '*'); i >= 0 { // "async*f", "setTimeout handler*f"
		f.Function = f.Function[i+1:]
	}
	return f, column > 0 && f.File != "" && strings.IndexByte(f.File, ' ') < 0
}

// geckoAt is the "@" between name and place. Names and URLs may hold "@"
// too: the one before the scheme counts.
func geckoAt(s string) int {
	if scheme := strings.Index(s, "://"); scheme > 0 {
		return strings.LastIndexByte(s[:scheme], '@')
	}
	return strings.LastIndexByte(s, '@')
}

// safariBare is a frame without position: "fn@[native code]", "eval code@".
func safariBare(s string) (grouping.Frame, bool) {
	name, ok := strings.CutSuffix(s, "@[native code]")
	if ok {
		return grouping.Frame{Function: name, File: "[native code]"}, true
	}
	return grouping.Frame{}, false
}

func javascriptMark(line string) mark {
	s := strings.TrimSpace(line)
	for _, intro := range [...]string{"[cause]: ", "Caused by: ", "caused by: "} {
		if rest, ok := strings.CutPrefix(s, intro); ok {
			return named(cause, rest)
		}
	}
	s = strings.TrimPrefix(s, "Uncaught ")
	return classHeader(s)
}

func javascriptInApp(f *grouping.Frame) bool {
	switch {
	case f.File == "" || f.File[0] == '<' || f.File[0] == '[' || f.File == "native" || strings.HasPrefix(f.File, "index "):
		return false
	case strings.HasPrefix(f.File, "node:") || strings.HasPrefix(f.File, "internal/") || strings.HasPrefix(f.File, "wasm://"):
		return false
	case strings.Contains(f.File, "node_modules") || strings.Contains(f.File, "-extension://"):
		return false
	case strings.Contains(f.File, "webpack/") && !strings.Contains(f.File, "/src/"):
		return false
	}
	return !javascriptLibrary(baseName(withoutQuery(f.File)))
}

// javascriptLibrary knows the files of libraries that pages load on their own.
func javascriptLibrary(file string) bool {
	for _, name := range [...]string{"react-dom", "react.", "jquery", "angular", "vue.", "zone.js", "lodash", "polyfill", "vendor", "framework-"} {
		if strings.HasPrefix(file, name) {
			return true
		}
	}
	return !strings.ContainsAny(file, "./") && strings.HasPrefix(file, "events")
}

// javascriptIdentity is the file's name without hashes and the function's name
// without receiver. A name that a minifier made says nothing and is left out.
func javascriptIdentity(dst []byte, f *grouping.Frame) []byte {
	start := len(dst)
	if pkg, ok := after(f.File, "/node_modules/"); ok {
		dst = appendPackage(dst, pkg)
	}
	path := withoutQuery(f.File)
	name := len(dst)
	dst = appendFileName(dst, path)
	file := len(dst)
	dst = append(dst, ':')
	dst = appendScriptName(dst, f.Function, isBuilt(baseName(path), file-name))
	if len(dst) == file+1 && !hasStem(dst[start:file]) {
		return dst[:start]
	}
	return dst
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

// isBuilt reports whether a bundler wrote the file, so that short names in it
// are a minifier's. left is the length of its name without hashes.
func isBuilt(name string, left int) bool {
	return left < len(name) || strings.Contains(name, ".min.") || strings.Contains(name, "bundle") || strings.Contains(name, "chunk")
}

// appendScriptName appends the parts of "Object.Foo.bar/<" that
// somebody chose: "Foo.bar".
func appendScriptName(dst []byte, name string, built bool) []byte {
	first := true
	for name != "" {
		i := strings.IndexAny(name, "./")
		part := name
		if name = ""; i >= 0 {
			part, name = part[:i], part[i+1:]
		}
		if !isScriptName(part) || built && len(part) < 3 {
			continue
		}
		if !first {
			dst = append(dst, '.')
		}
		dst, first = append(dst, part...), false
	}
	return dst
}

func isScriptName(part string) bool {
	switch part {
	case "Object", "Function", "Module", "module", "exports", "prototype", "<anonymous>", "anonymous",
		"eval", "<computed>", "global code", "eval code", "window", "self":
		return false
	}
	return part != "" && part[0] != '<'
}
