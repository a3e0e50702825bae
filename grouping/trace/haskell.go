package trace

import "strings"

// Haskell, as HasCallStack prints it: "  total, called at src/Cart.hs:12:3 in shop-0.1:Cart".

var haskellForms = []form{formOf("$fn, called at $at~hs in $mod"), formOf("$fn, called at $at~hs")}

// haskellMarks read "shop: no such cart", above the calls.
var haskellMarks = []markForm{{header, formOf("$_^: $msg")}}

func haskellInApp(f *Frame) bool {
	return !strings.HasPrefix(f.File, "libraries/") && !strings.HasPrefix(f.Module, "base-") && f.Function != "error" && f.Function != "undefined"
}

// haskellIdentity is module, without its package's version and hash, and function.
func haskellIdentity(dst []byte, f *Frame) []byte {
	_, module, _ := cutLast(f.Module, ":")
	return appendCall(dst, module, f.Function)
}
