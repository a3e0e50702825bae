package trace

import "strings"

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

func collisionInApp(f *Frame) bool {
	return !strings.HasPrefix(f.File, "vendor/") && !isVendored(f.File) && f.File != "artisan" && f.File != "public/index.php"
}

// collisionIdentity is the file and the function called there, as the function around it is not always printed.
func collisionIdentity(dst []byte, f *Frame) []byte {
	dst = append(append(dst, baseName(f.File)...), ':')
	if f.Function == "" {
		return dst
	}
	return phpIdentity(dst, f)
}
