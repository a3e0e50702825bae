package v4

import "strings"

// PowerShell: "at Get-Cart, C:\shop\cart.ps1: line 12".

func powershellFrame(line string) (Frame, bool) {
	s, ok := strings.CutPrefix(line[leadingSpace(line):], "at ")
	if !ok {
		return Frame{}, false
	}
	name, place, ok := strings.Cut(s, ", ")
	file, n, numbered := cutLast(place, ": line ")
	if !ok || !numbered || !allDigits(n) {
		return Frame{}, false
	}
	return Frame{Function: name, File: file, Line: number(n)}, name != ""
}

func powershellMark(line string) mark { return classHeader(strings.TrimSpace(line)) }

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
