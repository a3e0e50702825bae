package trace

import "strings"

// Julia: " [1] total(cart::Cart) at /app/cart.jl:12", and since 1.6 on two lines, " [1] total(cart::Cart)" and
// " @ Shop /app/cart.jl:12".

var juliaForms = []form{
	formOf("@ $mod* $place").checked(isJuliaFile), formOf("@ $mod* $place [inlined]").checked(isJuliaFile),
	formOf("[$n] $fn* at $place").checked(juliaCall), formOf("[$n] $fn* at $place [inlined]").checked(juliaCall),
	formOf("[$n] $fn*)").checked(juliaCall),
}

func isJuliaFile(f *Frame) bool { return strings.Contains(f.File, ".jl") }

func juliaCall(f *Frame) bool {
	f.Function = juliaName(f.Function)
	return f.Function != ""
}

// juliaName is the function without its arguments; "(::var"#3#4")(x)" has none, and "#total#5" is one with keywords.
func juliaName(s string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(s[:cutAt(s, 0, '(')], "#"), "#")
	if name == "" && s != "" {
		return "anonymous"
	}
	return strings.TrimSpace(name)
}

var juliaMarks = []markForm{{header, formOf("ERROR: $error")}, {cause, formOf("caused by: $error")}}

var juliaLibraries = wordSet("Base Core Main.Base Test Distributed REPL Pkg")

func juliaInApp(f *Frame) bool {
	base := strings.HasPrefix(f.File, "./") && !strings.HasPrefix(f.Module, "Main")
	return !base && !juliaLibraries[f.Module] && !isBelow(f.File, "/.julia/packages/", "/share/julia/")
}

func juliaIdentity(dst []byte, f *Frame) []byte {
	if f.Function == "top-level scope" {
		return dst
	}
	return appendCall(dst, fileStem(f, ".jl"), f.Function)
}
