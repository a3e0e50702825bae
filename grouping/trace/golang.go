package trace

import (
	"strings"

	"github.com/weirlog/weir/grouping/trace/words"
)

// Go prints a frame on two lines, "pkg.(*T).Method(0xc000, 0x1)" and
// "\t/path/f.go:12 +0x1d". Senders send them together, apart, or on one line.

func goFrame(line string) (Frame, bool) {
	s := strings.TrimSpace(line)
	if s == "" {
		return Frame{}, false
	}
	if i := strings.Index(s, ".go:"); i > 0 {
		return goPlace(s, i)
	}
	if f, ok := quotedCall(line); ok {
		return f, true
	}
	if rest, ok := strings.CutPrefix(s, "created by "); ok {
		rest, _, _ = strings.Cut(rest, " in goroutine ")
		return Frame{Module: goCreator, Function: rest}, true
	}
	return goCall(s)
}

const goCreator = "created by"

// goPlace reads "/path/f.go:12 +0x1d", with or without
// the call before it. i is the index of ".go:".
func goPlace(s string, i int) (Frame, bool) {
	end := i + len(".go:")
	digits := countDigits(s[end:])
	if end += digits; digits == 0 {
		return Frame{}, false
	}
	start := strings.LastIndexAny(s[:i], " \t(") + 1
	if colon := strings.Index(s[start:i], ":/"); colon > 1 { // "main.total:/src/cart.go:12"
		start += colon + 1
	}
	f := Frame{}
	if call := strings.TrimRight(s[:start], " \t(:"); call != "" {
		var ok bool
		if f, ok = goCall(call); !ok {
			return Frame{}, false
		}
	}
	f.File, f.Line = s[start:i+len(".go")], number(s[i+len(".go:"):end])
	rest := s[end:]
	if rest != "" && rest[0] != ' ' && rest[0] != ')' && rest[0] != '\t' {
		return Frame{}, false
	}
	return f, true
}

// quotedCall reads "\t(*Cart).Total: return c.sum", which Gin and go-errors
// print below the place, "/src/cart.go:12 (0x8a1b2c)".
func quotedCall(line string) (Frame, bool) {
	name, _, ok := strings.Cut(strings.TrimPrefix(line, "\t"), ": ")
	if !ok || line[0] != '\t' || name == "" || notInGo.occursIn(name) || strings.IndexByte(name, '/') >= 0 {
		return Frame{}, false
	}
	return Frame{Module: goQuoted, Function: name}, true
}

// goQuoted stands for an unprinted package.
const goQuoted = "?"

// notInCall is in no call with its arguments.
const notInCall = "@:'\"`<>=#$;\\"

// notInGo is in no name of a function.
var notInGo = marksOf(notInCall + " \t")

var goSigns = []sign{{needs: ".go:1"}, {needs: "\t: "}, {needs: "created by "}, {needs: ".", lacks: notInCall}, {needs: "panic(", lacks: notInCall}}

// goCall reads "import/path.(*T).Method(args)"; the arguments may be
// missing when errors print their own stack.
func goCall(s string) (Frame, bool) {
	name := s
	if strings.HasSuffix(s, ")") {
		open := strings.LastIndexByte(s, '(')
		if open < 1 {
			return Frame{}, false
		}
		if args := s[open+1:]; args[0] != '*' {
			name = s[:open]
			if !isGoArgs(args) {
				return Frame{}, false
			}
		}
	}
	if name == "panic" {
		return Frame{Module: "runtime", Function: "panic"}, len(name) != len(s)
	}
	slash := strings.LastIndexByte(name, '/')
	dot := strings.IndexByte(name[slash+1:], '.')
	if dot < 1 || notInGo.occursIn(name) {
		return Frame{}, false
	}
	dot += slash + 1
	f := Frame{Module: name[:dot], Function: name[dot+1:]}
	if f.Function == "" || len(name) == len(s) && !isBareGoCall(f, slash) {
		return Frame{}, false
	}
	return f, true
}

// isGoArgs accepts what a Go trace prints between the
// parentheses: words in hexadecimal, braces, dots.
func isGoArgs(args string) bool {
	for i := 0; i < len(args); i++ {
		c := args[i]
		if !isHex(c) && strings.IndexByte("x, {}.?_)", c) < 0 {
			return false
		}
	}
	return true
}

// isBareGoCall decides on a name without arguments: it must look
// like Go and like nothing else.
func isBareGoCall(f Frame, slash int) bool {
	if strings.HasSuffix(f.Function, ".") || strings.IndexByte(f.Function, '/') >= 0 {
		return false
	}
	return f.Module == "main" || slash > 0 || strings.Contains(f.Function, "(*") || goStandard[f.Module]
}

var goMarks = []markForm{
	{stack, formOf("goroutine $_")}, {stack, formOf("Previous $_")}, // access that a race is with
	{otherStack, formOf("runtime stack:$_")}, {header, formOf("fatal error: $msg")},
	{header, formOf("$_http: panic serving $_: $msg")}, // an address, and what the handler panicked with
	{header, formOf("$_Observed a panic: $_ ($msg)")},  // by Kubernetes: a text, and the value in parentheses
}

func goMark(line string) mark {
	if message, ok := strings.CutPrefix(line, "panic: "); ok { // and maybe that it went on
		return mark{kind: header, message: strings.TrimSuffix(strings.TrimSuffix(message, " [recovered]"), " [recovered, repanicked]")}
	}
	if strings.HasPrefix(line, "WARNING: DATA RACE") {
		return mark{kind: header, typ: "DATA RACE"}
	}
	return mark{}
}

func goInApp(f *Frame) bool {
	if f.Module == "main" {
		return true
	}
	if f.Module == goQuoted && isGoStandardFile(f.File) {
		return false
	}
	if f.Module == goCreator || isGoModule(f.File) || strings.HasPrefix(f.Module, "vendor/") {
		return false
	}
	root, _, _ := strings.Cut(f.Module, "/")
	return !goStandard[root] && !strings.HasPrefix(f.Module, "golang.org/x/") && !strings.HasPrefix(f.Module, "google.golang.org/")
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

// isGoModule recognizes files of dependencies, also where paths are trimmed:
// "github.com/acme/shop@v1.2.3/cart.go".
func isGoModule(path string) bool {
	_, version, versioned := strings.Cut(path, "@v")
	return versioned && version != "" && isDigit(version[0]) || strings.Contains(path, "/pkg/mod/") || strings.Contains(path, "/vendor/")
}

// isGoStandardFile recognizes "/usr/local/go/src/runtime/panic.go".
func isGoStandardFile(path string) bool {
	path, ok := after(path, "/src/")
	root, _, inside := strings.Cut(path, "/")
	return ok && inside && goStandard[root]
}

// goStandard are the first elements of the standard library's import paths.
var goStandard = wordSet(words.GoStandard)

// goIdentity is package and function; closures keep the function
// that holds them. How a panic travels through the runtime, and
// who started the goroutine, do not count.
func goIdentity(dst []byte, f *Frame) []byte {
	if f.Function == "" {
		return append(dst, baseName(f.File)...)
	}
	if f.Module == goCreator || goPlumbing(f) {
		return dst
	}
	if f.Module == goQuoted {
		dst = append(dst, baseName(f.File)...)
	} else {
		dst = appendGoPackage(dst, f.Module)
	}
	for rest := f.Function; rest != ""; {
		var part string
		if part, rest = cutGoPart(rest); part != "" && !isGoCounter(part) {
			dst = append(append(dst, '.'), part...)
		}
	}
	return dst
}

func goPlumbing(f *Frame) bool {
	switch f.Module {
	case "runtime/debug":
		return true
	case "runtime":
		return f.Function == "panic" || f.Function == "goexit" || f.Function == "main" || f.Function == "sigpanic" ||
			strings.HasPrefix(f.Function, "gopanic") || strings.HasPrefix(f.Function, "panic") || strings.HasPrefix(f.Function, "goPanic")
	}
	return false
}

// cutGoPart takes the first part off "(*T[...]).Method.func1":
// "T", then "Method", then "func1".
func cutGoPart(s string) (part, rest string) {
	s = strings.TrimPrefix(s, "(*")
	end := strings.IndexByte(s, '.')
	if bracket := strings.IndexByte(s, '['); bracket >= 0 && (end < 0 || bracket < end) {
		part = s[:bracket]
		if end = strings.IndexByte(s, ']'); end < 0 {
			return part, ""
		}
		return part, strings.TrimLeft(s[end+1:], ").")
	}
	if end < 0 {
		return strings.TrimSuffix(strings.TrimSuffix(s, ")"), "-fm"), ""
	}
	return strings.TrimSuffix(s[:end], ")"), s[end+1:]
}

// isGoCounter recognizes what the compiler counts: "1", "func2",
// "gowrap1", "deferwrap3".
func isGoCounter(part string) bool {
	for _, prefix := range [...]string{"func", "gowrap", "deferwrap", "-range"} {
		if rest, ok := strings.CutPrefix(part, prefix); ok && allDigits(rest) {
			return true
		}
	}
	return allDigits(part)
}

// appendGoPackage appends an import path without versions:
// "a/b/v2@v2.1.0/c" is "a/b/c".
func appendGoPackage(dst []byte, path string) []byte {
	for path != "" {
		part, rest, more := strings.Cut(path, "/")
		part, _, _ = strings.Cut(part, "@")
		if path = rest; isVersion(part) {
			continue
		}
		dst = append(dst, part...)
		if more {
			dst = append(dst, '/')
		}
	}
	return dst
}
