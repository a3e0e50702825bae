package trace

import "strings"

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

var juliaIntros = []intro{{"ERROR: ", header, markOf}, {"caused by: ", cause, markOf}}

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
