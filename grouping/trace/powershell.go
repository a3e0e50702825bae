package trace

import "strings"

// PowerShell: "at Get-Cart, C:\shop\cart.ps1: line 12", and of
// an error itself "At C:\shop\cart.ps1:12 char:5". The words
// are translated, and French has a blank before each colon.

func powershellFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	if strings.IndexByte(s, ',') < 0 && strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, '/') < 0 {
		return Frame{}, false
	}
	if f, ok := powershellPlace(s); ok {
		return f, true
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
	return Frame{Function: name, File: trimEnd(file), Line: number(n)}, name != ""
}

// powershellPlace reads "At C:\shop\cart.ps1:12 char:5" by
// the script's extension, its line and the last number.
func powershellPlace(s string) (Frame, bool) {
	script, rest, ok := strings.Cut(s, ".ps1:")
	before := strings.TrimRight(rest, "0123456789")
	column := len(before) < len(rest) && strings.HasSuffix(trimEnd(before), ":")
	begin := strings.Index(script, `:\`) - 1
	if begin < 0 {
		begin = strings.Index(script, " /") + 1
	}
	if !ok || !column || begin < 1 {
		return Frame{}, false
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	return Frame{File: s[begin : len(script)+len(".ps1")], Line: number(rest[:digits])}, digits > 0
}

// powershellMarks read an error's category: "+ CategoryInfo :
// ObjectNotFound: (C:\a:String) [Get-Item], ItemNotFoundException".
var powershellMarks = []markForm{{trailer, formOf("+ CategoryInfo$_*], $type")}, {header, formOf("$class")}}

func powershellInApp(f *Frame) bool {
	_, module := after(f.File, "/WindowsPowerShell/", "/PowerShell/Modules/", "/powershell/Modules/")
	return !module
}

// powershellIdentity is file and function.
// Typed commands have no file, blocks no name.
func powershellIdentity(dst []byte, f *Frame) []byte {
	if strings.HasPrefix(f.File, "<") { // "<No file>"
		return dst
	}
	name, _, _ := strings.Cut(f.Function, "<") // "Get-Cart<Process>"
	return append(append(appendFileName(dst, f.File), ':'), name...)
}
