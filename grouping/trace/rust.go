package trace

import (
	"bytes"
	"strings"
)

// Rust prints a frame on two lines, "4: krate::module::fn::h3e3f989126541ea9" and "at /path/lib.rs:27:5".

var rustForms = []form{
	formOf("at $at~.rs"),
	formOf("$n: $hex - $fn").checked(isRustCall), formOf("$n: $fn").checked(isRustCall),
}

// isRustCall tells a call from numbered lines of others: Node's "1: 0xb0 node::Abort() [node]", Lisp's
// "2: (SHOP::TOTAL 7)", and source code.
func isRustCall(f *Frame) bool {
	name := f.Function
	other := strings.HasPrefix(name, "0x") || strings.HasPrefix(name, "(") || endsWithAny(name, "]", "{", ";")
	return strings.Contains(name, "::") && !other || name == "main" || name == "rust_begin_unwind"
}

// Before release 1.73, the message was in front of the place.
var rustMarks = []markForm{
	{header, formOf("Error: $msg")}, // what main returned
	{header, formOf("thread $_ panicked at '$msg', $_")}, {messageBelow, formOf("thread $_ panicked at $_*:")}, {header, formOf("thread $_ panicked at $msg")},
}

// rustPlaces read where a thread panicked.
var rustPlaces = []form{
	formOf("thread $_ panicked at $_*', $at~.rs"), formOf("thread $_ panicked at $at*~.rs:"), formOf("thread $_ panicked at $at~.rs"),
}

func rustInApp(f *Frame) bool {
	return f.Function == "" && f.File != "" || isOwnRust(f.Function, maxQualified)
}

// maxQualified is how deep types are nested in a name that is read.
const maxQualified = 4

// isOwnRust reports whether a function's crate is not known to be a library. A method is own code if its type or its
// trait is, except for traits that the standard library implements for all types.
func isOwnRust(name string, depth int) bool {
	typ, trait, _, qualified := cutQualified(name)
	if qualified && depth > 0 {
		_, path, _ := strings.Cut(trait, "::")
		blanket := beginsWithAny(path, "ops::function::", "convert::Into<", "convert::TryInto<", "string::ToString", "string::SpecToString", "any::Any")
		return isOwnRust(typ, depth-1) && !blanket || isOwnRust(trait, depth-1)
	}
	crate := rustCrate(name)
	return crate != "" && !rustCrates[crate]
}

// rustCrate is the crate of a path; "" of "T", "u32" and "fn(a::B)".
func rustCrate(path string) string {
	crate, _, ok := strings.Cut(withoutReference(path), "::")
	if crate, _, _ = strings.Cut(crate, "["); !ok || !isIdentifier(crate) { // "shop[5c1a2b3c4d5e6f70]::main"
		return ""
	}
	return crate
}

// cutQualified splits "<shop::Cart<u32> as shop::Priced>::price", and
// "shop::pay::<impl shop::Priced for shop::Cart<T>>::price".
func cutQualified(name string) (typ, trait, rest string, ok bool) {
	if name = withoutReference(name); strings.HasPrefix(name, "_<") {
		name = name[1:]
	}
	if impl := strings.Index(name, "<impl "); impl >= 0 && name[0] != '<' {
		name = name[impl:]
	}
	end := closing(name)
	if end < 0 || name[0] != '<' {
		return "", "", "", false
	}
	inner, rest := name[1:end], name[end+1:]
	if impl, ok := strings.CutPrefix(inner, "impl "); ok {
		if trait, typ, ok = cutOutside(impl, " for "); ok {
			return typ, trait, rest, true
		}
		inner = impl
	}
	typ, trait, _ = cutOutside(inner, " as ")
	return typ, trait, rest, true
}

// closing is the index of the bracket that closes s, which begins with "<", "{" or "["; -1 if there is none.
func closing(s string) int {
	depth := 0
	for i := range len(s) {
		switch {
		case s[i] == s[0]:
			depth++
		case s[i] == s[0]+2 && s[i-1] != '-': // "fn() -> u32"
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// cutOutside is strings.Cut at a mark outside of "<>".
func cutOutside(s, mark string) (before, after string, ok bool) {
	for i := 0; i < len(s); i++ {
		if s[i] == '<' {
			end := closing(s[i:])
			if end < 0 {
				break
			}
			i += end
		} else if strings.HasPrefix(s[i:], mark) {
			return s[:i], s[i+len(mark):], true
		}
	}
	return s, "", false
}

// withoutReference is the type in "&mut shop::Cart" and "[shop::Item]".
func withoutReference(typ string) string { return withoutBegins(typ, "&", "mut ", "dyn ", "[") }

// rustIdentity is the path of the function or, of a method, of its type. Hashes of symbols and crates, type arguments
// and closures are left out: they change with the build, or are printed by one way of mangling only.
func rustIdentity(dst []byte, f *Frame) []byte {
	switch {
	case f.Function == "": // where a thread panicked
		return append(dst, baseName(f.File)...)
	case !f.InApp && containsAny(f.Function, rustPlumbing):
		return dst
	}
	return appendRust(dst, withoutRustHash(f.Function), maxQualified)
}

var rustPlumbing = partsOf("panicking::", "backtrace::", "__rust_", "rust_begin_unwind")

func appendRust(dst []byte, name string, depth int) []byte {
	typ, trait, rest, qualified := cutQualified(name)
	if !qualified || depth == 0 {
		return appendRustPath(dst, withoutReference(name))
	}
	if rustCrate(typ) == "" && typ[:min(1, len(typ))] != "<" && trait != "" { // "<T as shop::Priced>", "<u32 as shop::Priced>"
		typ = trait
	}
	return appendRustPath(appendRust(dst, typ, depth-1), rest)
}

// appendRustPath appends a path without what is in brackets.
func appendRustPath(dst []byte, path string) []byte {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '<', '{', '[': // "{closure#1}", "{{closure}}"
			dst = bytes.TrimSuffix(dst, []byte("::"))
			end := closing(path[i:])
			if end < 0 {
				return dst
			}
			i += end
		case ' ', ']', '>':
			return dst
		default:
			dst = append(dst, path[i])
		}
	}
	return dst
}

// withoutRustHash drops the hash after a symbol: "::h3e3f989126541ea9".
func withoutRustHash(name string) string {
	if path, hash, ok := cutLast(name, "::h"); ok && len(hash) == rustHash-1 && isHexTail(hash) {
		return path
	}
	return name
}
