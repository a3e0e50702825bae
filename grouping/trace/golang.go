package trace

import (
	"bytes"
	"strings"
)

// Go prints a frame on two lines, "pkg.(*T).Method(0xc000, 0x1)" and "\t/path/f.go:12 +0x1d". Senders send them
// together, apart, or on one line.

func goFrame(l line, f *Frame) bool {
	*f = Frame{}
	s := strings.TrimSpace(l.string)
	if i := strings.Index(s, ".go:"); l.has&numbered != 0 && i > 0 {
		return goPlace(s, i, f)
	}
	if call, ok := strings.CutPrefix(s, "created by "); ok {
		f.Module = goCreator
		f.Function, _, _ = strings.Cut(call, " in goroutine ")
		return true
	}
	return quotedCall(l.string, f) || l.has&notInCallMarks == 0 && goCall(s, f)
}

// goPlace reads "/path/f.go:12 +0x1d", with or without the call before it. i is the index of ".go:".
func goPlace(s string, i int, f *Frame) bool {
	start := strings.LastIndexAny(s[:i], " \t(") + 1
	if colon := strings.Index(s[start:i], ":/"); colon > 1 { // "main.total:/src/cart.go:12"
		start += colon + 1
	}
	if call := strings.TrimRight(s[:start], " \t(:"); call != "" && !goCall(call, f) {
		return false
	}
	rest := s[i+len(".go:"):]
	digits := countDigits(rest)
	f.File, f.Line = s[start:i+len(".go")], number(rest[:digits])
	return digits > 0 && (digits == len(rest) || strings.IndexByte(" )\t", rest[digits]) >= 0)
}

// quotedCall reads "\t(*Cart).Total: return c.sum", which Gin and go-errors print below the place,
// "/src/cart.go:12 (0x8a1b2c)".
func quotedCall(line string, f *Frame) bool {
	line, indented := strings.CutPrefix(line, "\t")
	name, _, ok := strings.Cut(line, ": ")
	f.Module, f.Function = goQuoted, name
	return indented && ok && name != "" && !notInGo.occursIn(name) && strings.IndexByte(name, '/') < 0
}

const (
	goCreator = "created by"
	goQuoted  = "?"              // stands for an unprinted package
	notInCall = "@:'\"`<>=#$;\\" // is in no call with its arguments
)

// notInGo is in no name of a function, and inGoArgs all that is printed between
// parentheses: words in hexadecimal, braces, dots.
var notInCallMarks, notInGo, inGoArgs = marksOf(notInCall), marksOf(notInCall + " \t"), marksOf("0abcdefx, {}.?_)")

var goSigns = []sign{
	{needs: ".go:1"}, {needs: "\t: "}, {needs: "created by ", first: "c"}, {needs: ".", lacks: notInCall}, {needs: "panic(", lacks: notInCall, first: "p"},
}

// goCall reads "import/path.(*T).Method(args)"; the arguments may be missing when errors print their own stack.
func goCall(s string, f *Frame) bool {
	name := s
	if open := strings.LastIndexByte(s, '('); open > 0 && s[len(s)-1] == ')' && s[open+1] != '*' {
		if name = s[:open]; marksOf(s[open+1:])&^inGoArgs != 0 {
			return false
		}
	}
	bare := len(name) == len(s)
	if name == "panic" {
		f.Module, f.Function = "runtime", name
		return !bare
	}
	slash := strings.LastIndexByte(name, '/')
	f.Module, f.Function, _ = strings.Cut(name[slash+1:], ".")
	if f.Module == "" || f.Function == "" || notInGo.occursIn(name) {
		return false
	}
	f.Module = name[:slash+1+len(f.Module)]
	// A name without arguments must look like Go and like nothing else.
	return !bare || !strings.HasSuffix(name, ".") && (f.Module == "main" || slash > 0 || strings.Contains(name, "(*") || goStandard[f.Module])
}

var goMarks = []markForm{
	{stack, formOf("goroutine $_")}, {stack, formOf("Previous $_")}, // access that a race is with
	{otherStack, formOf("runtime stack:$_")}, {header, formOf("fatal error: $msg")}, {header, formOf("WARNING: $type~RACE")},
	{header, formOf("panic: $msg* [recovered$_")}, {header, formOf("panic: $msg")},
	{header, formOf("$_http: panic serving $_: $msg")}, // an address, and what the handler panicked with
	{header, formOf("$_Observed a panic: $_ ($msg)")},  // by Kubernetes: a text, and the value in parentheses
}

func goInApp(f *Frame) bool {
	module := f.Module
	if module == goQuoted {
		module, _ = after(f.File, "/src/") // "/usr/local/go/src/runtime/panic.go"
	}
	_, version, _ := strings.Cut(f.File, "@v") // where paths are trimmed: "github.com/acme/shop@v1.2.3/cart.go"
	if f.Module == "main" {                    // also of a program that was installed from its module
		return true
	}
	return module != goCreator && countDigits(version) == 0 && !goStandard[module[:cutAt(module, 0, '/')]] &&
		!isBelow(f.File, "/pkg/mod/", "/vendor/") && !beginsWithAny(f.Module, "vendor/", "golang.org/x/", "google.golang.org/")
}

// goOwn takes those calls out of own code that report a panic: a deferred
// function runs, and is printed, above the panic that it recovers.
func goOwn(frames []Frame) {
	for last := len(frames) - 1; last >= 0; last-- {
		if f := &frames[last]; f.Module == "runtime" && f.Function == "panic" {
			for i := range last {
				frames[i].InApp = false
			}
			return
		}
	}
}

// goIdentity is package and function; closures keep the function that holds them. How a panic travels through the
// runtime, and who started the goroutine, do not count.
func goIdentity(dst []byte, f *Frame) []byte {
	switch f.Module {
	case goCreator, "runtime", "runtime/debug":
		return dst
	case goQuoted, "":
		dst = append(dst, baseName(f.File)...)
	default:
		dst = appendGoPackage(dst, f.Module)
	}
	for rest := f.Function; rest != ""; {
		var part string
		part, rest = cutGoPart(rest)
		stem := decimals.trimRight(part) // of what the compiler counts: "1", "func2", "gowrap1", "deferwrap3"
		if part != "" && (stem == part || stem != "" && !isOneOf(stem, "func", "gowrap", "deferwrap", "-range")) {
			dst = append(append(dst, '.'), part...)
		}
	}
	return dst
}

// cutGoPart takes the first part off "(*T[...]).Method.func1": "T", then "Method", then "func1".
func cutGoPart(s string) (part, rest string) {
	s = strings.TrimPrefix(s, "(*")
	end := cutAt(s, 0, '.')
	if part, arguments, generic := strings.Cut(s[:end], "["); generic {
		_, rest, _ := strings.Cut(s[len(s)-len(arguments)-len(s[end:]):], "]")
		return part, strings.TrimLeft(rest, ").")
	}
	return strings.TrimSuffix(strings.TrimSuffix(s[:end], "-fm"), ")"), s[min(end+1, len(s)):]
}

// appendGoPackage appends an import path without versions: "a/b/v2@v2.1.0/c" is "a/b/c".
func appendGoPackage(dst []byte, path string) []byte {
	for part := range strings.SplitSeq(path, "/") {
		if part, _, _ = strings.Cut(part, "@"); !isVersion(part) {
			dst = append(append(dst, part...), '/')
		}
	}
	return bytes.TrimSuffix(dst, []byte{'/'})
}
