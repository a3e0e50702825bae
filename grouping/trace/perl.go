package trace

import "strings"

// Perl, as Carp prints it: "Shop::Cart::total(7, "x") called at /app/Cart.pm line 12". The place is that of the call.

var perlForms = []form{
	formOf("$fn* called at $file* line $line").checked(withoutArguments),
	formOf("$fn* called at $file* line $line.").checked(withoutArguments),
}

// perlMarks read the first line, whose place is that of the innermost call.
var perlMarks = []markForm{{header, formOf("$msg* at $_* line $n.")}, {header, formOf("$msg* at $_* line $n")}}

func perlInApp(f *Frame) bool {
	return strings.HasPrefix(f.Function, "main::") ||
		!isBelow(f.File, "/perl5/", "/share/perl/", "/lib/perl/", "/site_perl/", "/vendor_perl/", "/local/lib/")
}

func perlIdentity(dst []byte, f *Frame) []byte {
	if strings.HasPrefix(f.Function, "eval ") || f.Function == "require" || strings.HasPrefix(f.Function, "Try::Tiny::") {
		return dst
	}
	return append(dst, f.Function...)
}
