package trace

import "strings"

// .NET: "at Ns.Type.Method[T](String s) in /src/C.cs:line 42"; "at", "in" and "line" may be translated.

func dotnetFrame(l line, f *Frame) bool {
	name, rest, called := strings.Cut(withoutIndent(l.string), "(")
	parameters, rest, closed := strings.Cut(rest, ")")
	if parameters != "" && (strings.IndexByte(parameters, ' ') < 0 || notInParameters.occursIn(parameters) || nowhere[parameters]) {
		return false // a place in Java or JavaScript, and no list of "Type name"
	}
	word, behind, _ := strings.Cut(name, " ")
	at := dotnetAt[word]
	if at {
		name = behind
	}
	if !called || !closed || name == "" || name[len(name)-1] == ' ' || !at && (!strings.Contains(l.string, ":line ") || strings.IndexByte(name, ' ') >= 0) {
		return false
	}
	*f = Frame{}
	f.Module, f.Function = dotnetName(name[strings.LastIndexByte(name, ' ')+1:]) // some print "async Task<int> " before it
	f.File, f.Line = dotnetPlace(rest)
	return f.File != "" || strings.IndexByte(name, ' ') < 0 && (f.Module != "" || f.Function == "lambda_method")
}

// dotnetForms are those of Mono, with and without symbols, and of Unity.
var dotnetForms = []form{
	formOf("at $fn^ ($_) [0x$_] in $place").checked(monoCall), formOf("at $fn^ ($_) [0x$_").checked(monoCall),
	formOf("$fn^ ($_*) (at $place)").checked(func(f *Frame) bool {
		if module, name, ok := strings.Cut(f.Function, ":"); ok {
			f.Module, f.Function = module, name
			return true
		}
		return monoCall(f)
	}),
}

func monoCall(f *Frame) bool {
	if strings.HasPrefix(f.File, "<") { // a build without symbols
		f.File, f.Line = "", 0
	}
	f.Module, f.Function = dotnetName(f.Function)
	return f.Module != ""
}

// dotnetAt is "at" in the languages of .NET.
var dotnetAt = wordSet("at bei à в em en w v in vid ved på bij konum: 場所 在 於 위치:")

// dotnetPlace reads " in /src/C.cs:line 42", translated too.
func dotnetPlace(s string) (file string, line int) {
	before, n, _ := cutLast(strings.TrimRight(s, "."), " ")
	place, _, ok := cutLast(before, ":")
	if place = strings.TrimSpace(place); !ok || !allDigits(n) {
		return "", 0
	}
	if _, path, ok := strings.Cut(place, " "); ok { // behind "in"
		place = path
	}
	return place, number(n)
}

var notInParameters = marksOf(":/")

// dotnetName splits a name at its last dot; constructors are ".ctor".
func dotnetName(s string) (module, function string) {
	dot := strings.LastIndexByte(s[:cutAt(s, 0, '[')], '.') // type arguments of the method may hold dots
	if dot > 0 && s[dot-1] == '.' {
		dot--
	}
	if dot < 1 {
		return "", s
	}
	return s[:dot], s[dot+1:]
}

func dotnetMark(l line) mark {
	s := strings.TrimSpace(l.string)
	// The line after the frames of an inner exception is indented in every language, unlike that of a rethrow.
	if strings.HasPrefix(l.string, "   --- ") && strings.HasSuffix(s, " ---") && !strings.HasPrefix(s, "--- End of stack") {
		return mark{kind: wrapper}
	}
	if _, inner, ok := cutLast(s, "---> "); ok {
		return markOf(header, inner)
	}
	if strings.HasPrefix(s, "----- Inner Stack Trace") { // by xUnit, below the outer stack; the type is above both
		return mark{kind: cause}
	}
	return classHeader(withoutBegins(s, "---- ", "Unhandled exception. "))
}

// dotnetIdentity is type and method. State machines and closures are named by their method; frames that resume or
// rethrow do not count.
func dotnetIdentity(dst []byte, f *Frame) []byte {
	if beginsWithAny(f.Module, "System.Runtime.CompilerServices.", "System.Runtime.ExceptionServices.") || strings.HasPrefix(f.Function, "lambda_method") {
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

// appendDotnet appends a name part by part: "<DoAsync>d__5" becomes "DoAsync", "<F>g__Local|0_1" "F.Local";
// "<>c__DisplayClass3_0" and type arguments are dropped.
func appendDotnet(dst []byte, name string) []byte {
	name, _, _ = strings.Cut(name, "[")
	start := len(dst)
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '.' || r == '+' }) {
		outer, local := dotnetPart(part)
		for _, s := range [...]string{outer, local} {
			if s != "" && len(dst) > start {
				dst = append(dst, '.')
			}
			dst = append(dst, s...)
		}
	}
	return dst
}

// basicMachine begins the name that Visual Basic gives an async method: "VB$StateMachine_12_TotalAsync".
const basicMachine = "VB$StateMachine_"

func dotnetPart(part string) (outer, local string) {
	part, _, _ = strings.Cut(part, "`")
	if name, counters, _ := strings.Cut(part, "@"); strings.Trim(counters, "0123456789-") == "" { // of a closure in F#: its line, "12-1"
		part = name
	}
	if machine, ok := strings.CutPrefix(part, basicMachine); ok {
		_, method, _ := strings.Cut(machine, "_")
		return method, ""
	}
	if strings.HasPrefix(part, "_Closure$__") || strings.HasPrefix(part, "_Lambda$__") {
		return "", ""
	}
	method, rest, ok := strings.Cut(strings.TrimLeft(part, "<"), ">") // "<<Main>b__0_0>d" is a lambda in Main that waits
	if !ok || part[0] != '<' {
		return part, ""
	}
	if _, name, ok := strings.Cut(rest, "g__"); ok {
		local, _, _ = strings.Cut(name, "|")
	}
	return method, local
}
