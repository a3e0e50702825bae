package trace

import "strings"

// R, as traceback prints it, the innermost call first: "3: total(cart) at cart.R#12".

var rForms = []form{formOf("$n: $fn^($_*) at $file*#$line"), formOf("$n: $fn^($_*)")}

var rMarks = []markForm{{header, formOf("Error in $_ : $msg")}}

func rInApp(f *Frame) bool { return !rCore[f.Function] && !strings.Contains(f.Function, "::") }

func rIdentity(dst []byte, f *Frame) []byte { return append(dst, f.Function...) }
