package trace

import "strings"

// Perl, as Carp prints it: "Shop::Cart::total(7, "x") called at /app/Cart.pm
// line 12". The place is that of the call.

func perlFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	call, place, ok := cutLast(s, " called at ")
	if !ok {
		return Frame{}, false
	}
	f, ok := perlPlace(place)
	f.Function = call
	if open := strings.IndexByte(call, '('); open > 0 {
		f.Function = call[:open]
	}
	return f, ok
}

// perlPlace reads "/app/Cart.pm line 12".
func perlPlace(s string) (Frame, bool) {
	file, n, ok := cutLast(s, " line ")
	n = strings.TrimSuffix(n, ".")
	return Frame{File: file, Line: number(n)}, ok && allDigits(n) && file != ""
}

// perlMark reads the first line, "no such cart at /app/Cart.pm line 12.",
// whose place is that of the innermost call.
func perlMark(line string) mark {
	message, place, ok := cutLast(strings.TrimSpace(line), " at ")
	if _, isPlace := perlPlace(place); !ok || !isPlace {
		return mark{}
	}
	return mark{kind: header, message: message}
}

func perlInApp(f *Frame) bool {
	_, library := after(f.File, "/perl5/", "/share/perl/", "/lib/perl/", "/site_perl/", "/vendor_perl/", "/local/lib/")
	return !library || strings.HasPrefix(f.Function, "main::")
}

func perlIdentity(dst []byte, f *Frame) []byte {
	if strings.HasPrefix(f.Function, "eval ") || f.Function == "require" || strings.HasPrefix(f.Function, "Try::Tiny::") {
		return dst
	}
	return append(dst, f.Function...)
}
