package trace

import "strings"

// Rust prints a frame on two lines, "4:
// krate::module::fn::h3e3f989126541ea9" and "at /path/lib.rs:27:5".

func rustFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	digits := 0
	for digits < len(s) && isDigit(s[digits]) {
		digits++
	}
	if name, ok := strings.CutPrefix(s[digits:], ": "); ok && digits > 0 {
		name = rustName(strings.TrimSpace(name))
		return Frame{Function: name}, strings.Contains(name, "::") && !isOtherCall(name) || name == "main" || name == "rust_begin_unwind"
	}
	if place, ok := strings.CutPrefix(s, "at "); ok {
		file, n, column, ok := cutPosition(place)
		return Frame{File: file, Line: n, Column: column}, ok && strings.HasSuffix(file, ".rs")
	}
	return Frame{}, false
}

// isOtherCall recognizes numbered lines of others: Node's "1: 0xb0
// node::Abort() [node]", Lisp's "2: (SHOP::TOTAL 7)", and source code.
func isOtherCall(name string) bool {
	last := name[len(name)-1]
	return strings.HasPrefix(name, "0x") || name[0] == '(' || last == ']' || last == '{' || last == ';'
}

// rustName drops an address in front of the name.
func rustName(s string) string {
	if strings.HasPrefix(s, "0x") {
		if _, name, ok := strings.Cut(s, " - "); ok {
			return name
		}
	}
	return s
}

func rustMark(line string) mark {
	if message, ok := strings.CutPrefix(line, "Error: "); ok { // what main returned
		return mark{kind: header, message: message}
	}
	_, message, ok := strings.Cut(line, " panicked at ")
	if !ok || !strings.HasPrefix(line, "thread ") {
		return mark{}
	}
	if said, _, quoted := strings.Cut(strings.TrimPrefix(message, "'"), "', "); quoted && message[0] == '\'' { // before release 1.73
		return mark{kind: header, message: said}
	}
	if strings.HasSuffix(message, ":") { // a place; the message is on the next line
		return mark{kind: messageBelow}
	}
	return mark{kind: header, message: message}
}

// rustPlace reads where a thread panicked: "thread 'main' panicked at
// src/cart.rs:12:5:"; before release 1.73 with the message in front.
func rustPlace(line string) Frame {
	_, said, ok := strings.Cut(line, " panicked at ")
	if !ok || !strings.HasPrefix(line, "thread ") {
		return Frame{}
	}
	if _, place, quoted := cutLast(said, "', "); quoted {
		said = place
	}
	file, n, column, ok := cutPosition(strings.TrimSuffix(said, ":"))
	if !ok || !strings.HasSuffix(file, ".rs") {
		return Frame{}
	}
	return Frame{File: file, Line: n, Column: column}
}

func rustInApp(f *Frame) bool {
	name := strings.TrimLeft(f.Function, "<_")
	for _, crate := range [...]string{"core::", "std::", "alloc::", "rust_begin_unwind", "tokio::", "rayon::", "futures"} {
		if strings.HasPrefix(name, crate) {
			return false
		}
	}
	return !strings.HasPrefix(f.File, "/rustc/") && !strings.Contains(f.File, "/.cargo/registry/")
}

// rustIdentity is the path without the symbol's
// hash. Closures keep the function around them.
func rustIdentity(dst []byte, f *Frame) []byte {
	name := f.Function
	if name == "" && f.File != "" { // where a thread panicked
		return append(dst, baseName(f.File)...)
	}
	if name == "" || strings.Contains(name, "panicking::") || strings.HasPrefix(name, "rust_begin_unwind") ||
		strings.Contains(name, "backtrace::") || strings.Contains(name, "__rust_") {
		return dst
	}
	name = withoutRustHash(name)
	if crate, rest, ok := strings.Cut(name, "["); ok { // "shop[5c1a2b3c4d5e6f70]::main"
		if hash, path, ok := strings.Cut(rest, "]::"); ok && isHexWord(hash, 8) {
			return appendUnhashed(append(append(dst, crate...), "::"...), path)
		}
	}
	return appendUnhashed(dst, name)
}

// withoutRustHash drops the hash after a symbol: "::h3e3f989126541ea9".
func withoutRustHash(name string) string {
	if i := strings.LastIndex(name, "::h"); i > 0 && len(name) == i+3+16 && isHexTail(name[i+3:]) {
		return name[:i]
	}
	return name
}

// appendUnhashed appends a name without the compiler's
// counters: "{closure#1}" and "{{closure}}" become "{closure}".
func appendUnhashed(dst []byte, name string) []byte {
	for before, rest, found := strings.Cut(name, "{{closure}}"); found; before, rest, found = strings.Cut(name, "{{closure}}") {
		dst, name = append(appendUnhashed(dst, before), "{closure}"...), rest
	}
	for {
		before, rest, found := strings.Cut(name, "#")
		dst = append(dst, before...)
		if !found {
			return dst
		}
		name = strings.TrimLeft(rest, "0123456789")
	}
}

func isHexTail(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isHex(s[i]) {
			return false
		}
	}
	return true
}
