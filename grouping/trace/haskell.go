package trace

import "strings"

// Haskell, as HasCallStack prints it: "  total, called at
// src/Cart.hs:12:3 in shop-0.1:Cart".

func haskellFrame(line string) (Frame, bool) {
	name, place, ok := strings.Cut(line[leadingSpace(line):], ", called at ")
	if !ok {
		return Frame{}, false
	}
	place, module, _ := strings.Cut(place, " in ")
	file, n, column, ok := cutPosition(place)
	return Frame{Function: name, Module: module, File: file, Line: n, Column: column}, ok && strings.HasSuffix(file, "hs")
}

// haskellMark reads "shop: no such cart", above the calls.
func haskellMark(line string) mark {
	program, message, ok := strings.Cut(line, ": ")
	if !ok || strings.ContainsAny(program, " \t(") {
		return mark{}
	}
	return mark{kind: header, message: message}
}

func haskellInApp(f *Frame) bool {
	return !strings.HasPrefix(f.File, "libraries/") && !strings.HasPrefix(f.Module, "base-") && f.Function != "error" && f.Function != "undefined"
}

// haskellIdentity is module, without its package's version and hash, and function.
func haskellIdentity(dst []byte, f *Frame) []byte {
	_, module, _ := cutLast(f.Module, ":")
	return append(append(append(dst, module...), ':'), f.Function...)
}
