package v5

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
		return Frame{Function: name}, strings.Contains(name, "::") || name == "main" || name == "rust_begin_unwind"
	}
	if place, ok := strings.CutPrefix(s, "at "); ok {
		file, n, column, ok := cutPosition(place)
		return Frame{File: file, Line: n, Column: column}, ok && strings.HasSuffix(file, ".rs")
	}
	return Frame{}, false
}

// rustName drops an address before the name.
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
	if strings.HasSuffix(message, ":") { // a place; what was said is on the next line
		return mark{kind: heading}
	}
	return mark{kind: header, message: message}
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

// rustIdentity is the path without the hash of the symbol;
// closures keep the function that holds them.
func rustIdentity(dst []byte, f *Frame) []byte {
	name := f.Function
	if name == "" || strings.Contains(name, "panicking::") || strings.HasPrefix(name, "rust_begin_unwind") ||
		strings.Contains(name, "backtrace::") || strings.Contains(name, "__rust_") {
		return dst
	}
	if i := strings.LastIndex(name, "::h"); i > 0 && len(name) == i+3+16 && isHexTail(name[i+3:]) {
		name = name[:i]
	}
	if crate, rest, ok := strings.Cut(name, "["); ok { // "shop[5c1a2b3c4d5e6f70]::main"
		if hash, path, ok := strings.Cut(rest, "]::"); ok && isHexWord(hash, 8) {
			return appendUnhashed(append(append(dst, crate...), "::"...), path)
		}
	}
	return appendUnhashed(dst, name)
}

// appendUnhashed appends a name without what the compiler
// counts: "{closure#1}" and "{{closure}}" are "{closure}".
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
