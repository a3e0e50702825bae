package trace

import "strings"

// .NET: "at Ns.Type.Method[T](String s) in /src/C.cs:line 42";
// "at", "in" and "line" may be translated.

func dotnetFrame(line string) (Frame, bool) {
	s, at := afterAt(line[leadingSpace(line):])
	if !at && !strings.Contains(s, ":line ") {
		return Frame{}, false
	}
	open := strings.IndexByte(s, '(')
	if open < 1 || !at && strings.IndexByte(s[:open], ' ') >= 0 {
		return Frame{}, false
	}
	if s[open-1] == ' ' {
		return Frame{}, false
	}
	end := strings.IndexByte(s[open:], ')')
	if end < 0 || !isParameters(s[open+1:open+end]) {
		return Frame{}, false
	}
	f := Frame{}
	f.Module, f.Function = dotnetName(withoutResult(s[:open]))
	f.File, f.Line = dotnetPlace(s[open+end+1:])
	return f, f.Function != "" && (strings.IndexByte(s[:open], ' ') < 0 || f.File != "") && (f.Module != "" || f.File != "" || f.Function == "lambda_method")
}

// dotnetForms are those of Mono, with and without symbols, and of Unity.
var dotnetForms = []form{
	formOf("at $fn^ ($_) [0x$_] in $place").checked(monoCall), formOf("at $fn^ ($_) [0x$_").checked(monoCall),
	formOf("$fn^ ($_*) (at $place)").checked(func(f *Frame) bool {
		var ok bool
		if f.Module, f.Function, ok = strings.Cut(f.Function, ":"); !ok {
			f.Module, f.Function = dotnetName(f.Module)
		}
		if strings.HasPrefix(f.File, "<") { // a build without symbols
			f.File = ""
		}
		return f.Module != "" && (f.File == "" || strings.HasSuffix(f.File, ".cs"))
	}),
}

func monoCall(f *Frame) bool {
	if strings.HasPrefix(f.File, "<") {
		f.File, f.Line = "", 0
	}
	f.Module, f.Function = dotnetName(f.Function)
	return f.Module != ""
}

// withoutResult drops "async Task<int> ",
// which some runtimes print before a name.
func withoutResult(s string) string { return s[strings.LastIndexByte(s, ' ')+1:] }

// dotnetAt is "at" in the languages of .NET.
var dotnetAt = wordSet("at bei à в em en w v in vid ved på bij konum: 場所 在 於 위치:")

// afterAt drops "at" or its translation.
func afterAt(s string) (string, bool) {
	if at, rest, ok := strings.Cut(s, " "); ok && len(at) <= len("위치:") && dotnetAt[at] {
		return rest, true
	}
	return s, false
}

// dotnetPlace reads " in /src/C.cs:line 42", translated too.
func dotnetPlace(s string) (file string, line int) {
	before, n, ok := cutLast(strings.TrimRight(s, "."), " ")
	place, _, placed := cutLast(before, ":")
	if !ok || !placed || place == "" || !allDigits(n) {
		return "", 0
	}
	place = strings.TrimSpace(place)
	if _, path, ok := strings.Cut(place, " "); ok { // behind "in"
		return path, number(n)
	}
	return place, number(n)
}

// isParameters distinguishes a list of "Type name" from the
// place of a Java or JavaScript frame.
func isParameters(s string) bool {
	if s == "" {
		return true
	}
	if s == "Native Method" || s == "Unknown Source" {
		return false
	}
	return strings.IndexByte(s, ' ') > 0 && strings.IndexByte(s, ':') < 0 && strings.IndexByte(s, '/') < 0
}

// dotnetName splits a name at its last dot; constructors are ".ctor".
func dotnetName(s string) (module, function string) {
	bracket := strings.IndexByte(s, '[') // type arguments of the method may hold dots
	if bracket < 0 {
		bracket = len(s)
	}
	dot := strings.LastIndexByte(s[:bracket], '.')
	if dot > 0 && s[dot-1] == '.' {
		dot--
	}
	if dot < 1 {
		return "", s
	}
	return s[:dot], s[dot+1:]
}

func dotnetMark(line string) mark {
	s := strings.TrimSpace(line)
	if isInnerEnd(line, s) {
		return mark{kind: wrapper}
	}
	if i := strings.LastIndex(s, "---> "); i >= 0 {
		return markOf(header, s[i+len("---> "):])
	}
	if strings.HasPrefix(s, "----- Inner Stack Trace") { // by xUnit, below the outer stack; the type is above both
		return mark{kind: cause}
	}
	if s = strings.TrimPrefix(s, "---- "); strings.HasPrefix(s, "---") {
		return mark{}
	}
	return classHeader(strings.TrimPrefix(s, "Unhandled exception. "))
}

// isInnerEnd recognizes the line after the frames of an inner exception.
// It is indented in every language, unlike that of a rethrow.
func isInnerEnd(line, s string) bool {
	return strings.HasPrefix(s, "--- End of inner exception") ||
		strings.HasPrefix(line, "   --- ") && strings.HasSuffix(s, " ---") && !strings.HasPrefix(s, "--- End of stack")
}

func dotnetInApp(f *Frame) bool {
	return f.Module != "" && !dotnetLibraries.contains(f.Module)
}

// dotnetIdentity is type and method. State machines and closures are
// named by their method; frames that resume or rethrow do not count.
func dotnetIdentity(dst []byte, f *Frame) []byte {
	if dotnetPlumbing(f) {
		return dst
	}
	start := len(dst)
	dst = appendDotnet(dst, f.Module)
	if f.Function == "MoveNext" && len(dst) > start && (strings.IndexByte(f.Module, '<') >= 0 || strings.Contains(f.Module, basicMachine)) {
		return dst
	}
	dst = append(dst, '.')
	return appendDotnet(dst, f.Function)
}

func dotnetPlumbing(f *Frame) bool {
	return strings.HasPrefix(f.Module, "System.Runtime.CompilerServices.") || strings.HasPrefix(f.Module, "System.Runtime.ExceptionServices.") ||
		strings.HasPrefix(f.Function, "lambda_method")
}

// appendDotnet appends a name part by part: "<DoAsync>d__5"
// becomes "DoAsync", "<F>g__Local|0_1" "F.Local";
// "<>c__DisplayClass3_0" and type arguments are dropped.
func appendDotnet(dst []byte, name string) []byte {
	name, _, _ = strings.Cut(name, "[")
	first := true
	for name != "" {
		i := strings.IndexAny(name, ".+")
		part := name
		if name = ""; i >= 0 {
			part, name = part[:i], part[i+1:]
		}
		outer, local := dotnetPart(part)
		for _, s := range [...]string{outer, local} {
			if s == "" {
				continue
			}
			if !first {
				dst = append(dst, '.')
			}
			dst, first = append(dst, s...), false
		}
	}
	return dst
}

// isFSharpCounter recognizes the line and the number of a closure: "12-1".
func isFSharpCounter(s string) bool { return s != "" && strings.Trim(s, "0123456789-") == "" }

// basicMachine begins the name that Visual Basic gives
// an async method: "VB$StateMachine_12_TotalAsync".
const basicMachine = "VB$StateMachine_"

func dotnetPart(part string) (outer, local string) {
	part, _, _ = strings.Cut(part, "`")
	if name, counters, ok := strings.Cut(part, "@"); ok && isFSharpCounter(counters) {
		part = name
	}
	if machine, ok := strings.CutPrefix(part, basicMachine); ok {
		_, method, _ := strings.Cut(machine, "_")
		return method, ""
	}
	if strings.HasPrefix(part, "_Closure$__") || strings.HasPrefix(part, "_Lambda$__") {
		return "", ""
	}
	if part == "" || part[0] != '<' {
		return part, ""
	}
	end := strings.IndexByte(part, '>')
	if end < 0 {
		return part, ""
	}
	if _, name, ok := strings.Cut(part[end:], "g__"); ok {
		local, _, _ = strings.Cut(name, "|")
	}
	return strings.TrimLeft(part[:end], "<"), local // "<<Main>b__0_0>d" is a lambda in Main that waits
}
