package trace

import "strings"

// PHP: "#0 /a/b.php(12): Ns\Cls->fn(Array)", "#1 [internal function]: {closure}()", "#2 {main}". The place is where the
// function was called.

var phpForms = []form{
	formOf("#$n $file: $fn").checked(phpPlaced),
	formOf("#$n $fn").checked(func(f *Frame) bool { return f.Function == "{main}" }),
	formOf("$fn^() at $place~.php").checked(phpCalled), // Symfony's console
}

// phpPlaced takes the line off "/a/b.php(12)".
func phpPlaced(f *Frame) bool {
	file, line, ok := cutLast(strings.TrimSuffix(f.File, ")"), "(")
	if ok = ok && allDigits(line); ok {
		f.File, f.Line = file, number(line)
	}
	return (ok || f.File == internalFunction) && phpCalled(f)
}

const internalFunction = "[internal function]"

var (
	// xdebugForms read "PHP   3. App\Cart->total($id = 7) /app/web.php:12"; the innermost call is printed last.
	xdebugForms = []form{formOf("PHP $n. $fn*) $place~.php").checked(phpCalled), formOf("$n. $fn*) $place~.php").checked(phpCalled)}
	phpPlaces   = []form{formOf("$_* in $file on line $line"), formOf("$_* in $place")} // of a syntax error
)

// unescapeName reads a name that Monolog may have written as JSON.
func (t *text) unescapeName(name string) string {
	if strings.Contains(name, `\\`) {
		return t.unescape(name)
	}
	return name
}

// phpCalled splits "Ns\Cls->fn(args)" into class and function.
func phpCalled(f *Frame) bool {
	s := f.Function
	if closure := strings.Index(s, "{closure"); closure >= 0 {
		f.Function = s[:min(cutAt(s, closure, '}')+1, len(s))]
		return true
	}
	f.Function = s[:cutAt(s, 0, '(')]
	if arrow := max(lastIndex(f.Function, "->"), lastIndex(f.Function, "::")); arrow > 0 {
		f.Module, f.Function = f.Function[:arrow], f.Function[arrow+2:]
	}
	return f.Function != ""
}

var phpMarks = []markForm{
	{header, formOf("$_[object] ($type(code: $_): $msg* at $_")}, // by Monolog, as JSON
	{wrapper, formOf("Next $error* in $place")}, {wrapper, formOf("Next $error")},
	{header, formOf("$_Uncaught $error* in $place")}, {header, formOf("$_Uncaught $error")},
	{header, formOf("$error* in $place")}, {header, formOf("$class")},
}

func phpInApp(f *Frame) bool {
	if f.Module != "" {
		return !phpLibraries[phpVendor(f.Module)]
	}
	return f.Function != "{main}" && f.File != internalFunction && !isVendored(f.File)
}

// phpOwn uses paths: a function is in the file that made the call above. So what vendor/ calls back is own code, and an
// unlisted package is not.
func phpOwn(frames []Frame) {
	for i := 1; i < len(frames); i++ {
		if above := frames[i-1].File; above != "" && above != internalFunction && frames[i].Function != "{main}" {
			frames[i].InApp = !isVendored(above)
		}
	}
	first := &frames[0]
	for _, other := range frames[1:] {
		if first.Module != "" && phpVendor(other.Module) == phpVendor(first.Module) {
			first.InApp = other.InApp
			return
		}
	}
}

// isVendored recognizes files of packages, and of WordPress itself.
func isVendored(path string) bool {
	return isBelow(path, "/vendor/", "/wp-includes/") || strings.HasPrefix(path, "vendor/")
}

// phpVendor is the first part of a class name.
func phpVendor(class string) string { return class[:cutAt(class, 0, '\\')] }

// phpIdentity is class and function. A closure is named by its function where PHP prints it, else by its namespace.
func phpIdentity(dst []byte, f *Frame) []byte {
	switch {
	case f.Function == "": // a syntax error
		return append(dst, baseName(f.File)...)
	case f.Function == "{main}" || f.Module == "" && phpPlumbing[f.Function]:
		return dst
	}
	class, _, _ := strings.Cut(f.Module, "@anonymous")
	if class != "" {
		dst = append(appendWithoutHashes(dst, class), ':')
	}
	name, inside, closure := strings.Cut(f.Function, "{closure")
	if !closure {
		return appendWithoutHashes(dst, f.Function)
	}
	inside, _, _ = cutNumber(strings.Trim(inside, ":}"))
	if !strings.Contains(inside, "::") {
		inside = baseName(inside)
	}
	dst = append(append(dst, name...), "{closure}"...)
	return append(dst, strings.TrimSuffix(inside, "()")...)
}

// appendWithoutHashes appends a name without hashes of template engines: "__TwigTemplate_8f3a2b1c",
// "content_65a1b2c3d4_12345678".
func appendWithoutHashes(dst []byte, name string) []byte {
	for part := range strings.SplitSeq(name, "_") {
		if !isHexWord(part, minPlainHexID) {
			dst = append(append(dst, part...), '_')
		}
	}
	return dst[:max(0, len(dst)-1)]
}

// Collision prints PHP errors on Laravel's console: the place of a call, and the called function below. Calls within
// libraries are left out.
//
//	  at app/Cart.php:12
//	  1   app/Checkout.php:30
//	      App\Cart::total()
//	      +9 vendor frames

var collisionForms = []form{
	formOf("at $place~.php|artisan"), formOf("$n $place~.php|artisan"),
	formOf("\t$mod^::$fn^($_*)"),
}

// collisionMark reads the class of an exception, alone on its line, above its message.
func collisionMark(l line) mark {
	if notInType.occursIn(l.string) || strings.IndexByte(l.string, '\\') < 0 && !isErrorName(l.string) {
		return mark{}
	}
	return mark{kind: messageBelow, typ: l.string}
}
