package v5

import "strings"

// PowerShell: "at Get-Cart, C:\shop\cart.ps1: line 12", and in an error's own
// words "At C:\shop\cart.ps1:12 char:5". "at" and "line" may be translated.

func powershellFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	if strings.HasPrefix(s, "At ") {
		return powershellPlace(s)
	}
	s, ok := afterAt(s)
	if !ok {
		return Frame{}, false
	}
	name, place, ok := strings.Cut(s, ", ")
	place, n, numbered := cutLast(place, " ")
	file, _, placed := cutLast(place, ": ")
	if !ok || !numbered || !placed || !allDigits(n) {
		return Frame{}, false
	}
	return Frame{Function: name, File: file, Line: number(n)}, name != ""
}

func powershellPlace(s string) (Frame, bool) {
	place, _, ok := strings.Cut(s[len("At "):], " char:")
	file, line, numbered := cutNumber(place)
	return Frame{File: file, Line: line}, ok && numbered
}

// powershellMark reads the exception of an error's category: "+ CategoryInfo :
// ObjectNotFound: (C:\a:String) [Get-Item], ItemNotFoundException".
func powershellMark(line string) mark {
	s := strings.TrimSpace(line)
	if _, typ, ok := cutLast(s, "], "); ok && strings.HasPrefix(s, "+ CategoryInfo") {
		return mark{kind: trailer, typ: typ}
	}
	return classHeader(s)
}

func powershellInApp(f *Frame) bool {
	_, module := after(f.File, "/WindowsPowerShell/", "/PowerShell/Modules/", "/powershell/Modules/")
	return !module
}

// powershellIdentity is file and function; what was typed has no
// file, and a block no name.
func powershellIdentity(dst []byte, f *Frame) []byte {
	if f.File == "<No file>" {
		return dst
	}
	name, _, _ := strings.Cut(f.Function, "<") // "Get-Cart<Process>"
	return append(append(appendFileName(dst, f.File), ':'), name...)
}
