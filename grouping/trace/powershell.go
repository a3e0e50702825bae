package trace

import "strings"

// PowerShell: "at Get-Cart, C:\shop\cart.ps1: line 12", and of an error itself "At C:\shop\cart.ps1:12 char:5". The
// words are translated, and French has a blank before each colon.

func powershellFrame(l line, f *Frame) bool {
	*f = Frame{}
	s := withoutIndent(l.string)
	if powershellPlace(s, f) {
		return true
	}
	s, ok := afterAt(s)
	name, place, named := strings.Cut(s, ", ")
	place, n, _ := cutLast(place, " ")
	file, _, placed := cutLast(place, ": ")
	f.Function, f.File, f.Line = name, trimEnd(file), number(n)
	return ok && named && placed && name != "" && allDigits(n)
}

// powershellPlace reads "At C:\shop\cart.ps1:12 char:5" by the script's extension, its line and the last number.
func powershellPlace(s string, f *Frame) bool {
	script, rest, ok := strings.Cut(s, ".ps1:")
	before := strings.TrimRight(rest, "0123456789")
	begin := strings.Index(script, `:\`) - 1
	if begin < 0 {
		begin = strings.Index(script, " /") + 1
	}
	if !ok || begin < 1 || len(before) == len(rest) || !strings.HasSuffix(trimEnd(before), ":") {
		return false
	}
	digits := countDigits(rest)
	f.File, f.Line = s[begin:len(script)+len(".ps1")], number(rest[:digits])
	return digits > 0
}

// powershellMarks read an error's category:
// "+ CategoryInfo : ObjectNotFound: (C:\a:String) [Get-Item], ItemNotFoundException".
var powershellMarks = []markForm{{trailer, formOf("+ CategoryInfo$_*], $type")}, {header, formOf("$class")}}

func powershellInApp(f *Frame) bool {
	return !isBelow(f.File, "/WindowsPowerShell/", "/PowerShell/Modules/", "/powershell/Modules/")
}

// powershellIdentity is file and function. Typed commands have no file, blocks no name.
func powershellIdentity(dst []byte, f *Frame) []byte {
	if strings.HasPrefix(f.File, "<") { // "<No file>"
		return dst
	}
	name, _, _ := strings.Cut(f.Function, "<") // "Get-Cart<Process>"
	return append(append(appendFileName(dst, f.File), ':'), name...)
}
