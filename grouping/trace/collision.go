package trace

import "strings"

// Collision prints PHP errors on Laravel's console: the place of a call,
// and the called function below. Calls within libraries are left out.
//
//	  at app/Cart.php:12
//	  1   app/Checkout.php:30
//	      App\Cart::total()
//	      +9 vendor frames

func collisionFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	if place, ok := collisionPlace(s); ok {
		file, n, ok := cutNumber(place)
		return Frame{File: file, Line: n}, ok && (strings.HasSuffix(file, ".php") || file == "artisan")
	}
	open := strings.IndexByte(s, '(')
	if s == line || open < 1 || s[len(s)-1] != ')' || strings.IndexByte(s[:open], ' ') >= 0 || !strings.Contains(s[:open], "::") {
		return Frame{}, false
	}
	f := Frame{}
	f.Module, f.Function = phpCall(s)
	return f, true
}

// collisionPlace drops "at " or a number before a place.
func collisionPlace(s string) (place string, ok bool) {
	if place, ok = strings.CutPrefix(s, "at "); ok {
		return place, true
	}
	n, place, ok := strings.Cut(s, " ")
	return place[leadingSpace(place):], ok && allDigits(n)
}

// collisionMark reads the class of an exception,
// alone on its line, above its message.
func collisionMark(line string) mark {
	class := strings.TrimSpace(line)
	if class == "" || notInType.occursIn(class) || strings.IndexByte(class, '\\') < 0 && !isErrorName(class) {
		return mark{}
	}
	return mark{kind: messageBelow, typ: class}
}

func collisionInApp(f *Frame) bool {
	return !strings.HasPrefix(f.File, "vendor/") && !isVendored(f.File) && f.File != "artisan" && f.File != "public/index.php"
}

// collisionIdentity is the file and the function called
// there, as the function around it is not always printed.
func collisionIdentity(dst []byte, f *Frame) []byte {
	dst = append(append(dst, baseName(f.File)...), ':')
	if f.Function == "" {
		return dst
	}
	return phpIdentity(dst, f)
}
