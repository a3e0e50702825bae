package trace

import (
	"slices"
	"strings"
)

// form is how a line is written: text with fields, as in
//
//	$fn, called at $at~hs in $mod
//
// A field ends before the text that follows it, where that is first found; "$fn*" ends where it is last found, "$fn^"
// is one word, and "$file~.py|.pyx" ends in one of these. Blanks around a field do not count. A form that begins with a
// tab is of lines with indentation only.
type form struct {
	begin    string // the text before the first field
	fields   []field
	needs    marks // what each such line holds
	indented bool
	check    func(f *Frame) bool
}

type field struct {
	what   content
	late   bool     // end where it is last found
	word   bool     // one word
	suffix []string // one of which it ends in
	end    string   // the text behind it; "": the line ends
}

// content is what a field holds.
type content uint8

const (
	anyField      content = iota
	functionField         // Frame.Function
	moduleField           // Frame.Module
	fileField             // Frame.File
	lineField             // Frame.Line
	columnField           // Frame.Column
	numberField           // a number that does not count
	addressField          // the same in hexadecimal, of more than eight characters
	placeField            // "file:12"
	positionField         // "file:12" or "file:12:3"
	errorField            // "Type: message", or a message
	classField            // "Type: message", of a type that is called an error
	typeField             // mark.typ
	messageField          // mark.message
)

var (
	contents               = strings.Fields("_ fn mod file line col n hex place at error class type msg") // the names of these
	formNames, suffixMarks = smallLetters | marksOf("_"), smallLetters | marksOf(".|>]A0")
	notInWord              = marksOf(" \t\"'=(){}[]")
)

// formOf compiles a form.
func formOf(pattern string) (p form) {
	pattern, p.indented = strings.CutPrefix(pattern, "\t")
	begin, rest, more := strings.Cut(pattern, "$")
	p.begin, p.needs = begin, newLine(begin).has
	for more {
		var f field
		tail := formNames.trimLeft(rest)
		f.what, rest = content(slices.Index(contents, rest[:len(rest)-len(tail)])), tail //nolint:gosec // a few
		rest, f.late = strings.CutPrefix(rest, "*")
		rest, f.word = strings.CutPrefix(rest, "^")
		if rest, more = strings.CutPrefix(rest, "~"); more {
			tail = suffixMarks.trimLeft(rest)
			f.suffix, rest = strings.Split(rest[:len(rest)-len(tail)], "|"), tail
		}
		f.end, rest, more = strings.Cut(rest, "$")
		p.needs |= newLine(f.end).has | f.needs()
		p.fields = append(p.fields, f)
	}
	return p
}

// needs is what each such field holds.
func (p *field) needs() (m marks) {
	if len(p.suffix) == 1 {
		m = marksOf(p.suffix[0])
	}
	switch p.what {
	case lineField, columnField, numberField:
		m |= kinds['0']
	case placeField, positionField:
		m |= kinds['0'] | kinds[':'] | numbered
	}
	return m
}

// checked is a form whose calls are corrected, or rejected.
func (p form) checked(check func(f *Frame) bool) form {
	p.check = check
	return p
}

// ends are the bytes with which lines of a form begin and end; 0 for any.
func (p *form) ends() (first, last marks) {
	first, last = marksOf(p.begin[:min(len(p.begin), 1)]), kinds['0']
	if p.begin == "" && p.fields[0].what == numberField {
		first = kinds['0']
	}
	if end := &p.fields[len(p.fields)-1]; end.end != "" || end.needs()&kinds['0'] == 0 || end.suffix != nil {
		last = marksOf(end.end[max(len(end.end)-1, 0):])
	}
	return first, last
}

// read reads a line that has the form.
func (p *form) read(s string, f *Frame, m *mark) bool {
	if !strings.HasPrefix(s, p.begin) {
		return false
	}
	s = s[len(p.begin):]
	for i := range p.fields {
		one := &p.fields[i]
		s = s[leadingSpace(s):]
		end, next := len(s), len(s)
		if one.end != "" {
			if end = strings.Index(s, one.end); end < 0 {
				return false
			}
			if one.late {
				end = lastIndex(s, one.end)
			}
			next = end + len(one.end)
		}
		if !one.read(trimEnd(s[:end]), f, m) {
			return false
		}
		s = s[next:]
	}
	return s == ""
}

// read reads the value of a field.
func (p *field) read(value string, f *Frame, m *mark) (ok bool) {
	ok = true
	switch p.what {
	case functionField:
		f.Function = value
	case moduleField:
		f.Module = value
	case fileField:
		f.File = value
	case lineField:
		f.Line, ok = number(value), allDigits(value)
	case columnField:
		f.Column, ok = number(value), allDigits(value)
	case numberField:
		ok = allDigits(value)
	case addressField:
		ok = len(value) > minPlainHexID && isHexTail(strings.TrimPrefix(value, "0x"))
	case placeField:
		f.File, f.Line, ok = cutNumber(value)
		value = f.File
	case positionField:
		f.File, f.Line, f.Column, ok = cutPosition(value)
		value = f.File
	case errorField:
		*m = markOf(noMark, value)
	case classField:
		*m = classHeader(value)
		ok = m.kind != noMark
	case typeField:
		m.typ = value
	case messageField:
		m.message = value
	}
	return ok && (p.suffix == nil || endsWithAny(value, p.suffix...)) && (!p.word || value != "" && !notInWord.occursIn(value))
}

// frame reads the call in a line of this form.
func (p *form) frame(line string, f *Frame) bool {
	s := withoutIndent(line)
	if !strings.HasPrefix(s, p.begin) || p.indented && len(s) == len(line) {
		return false
	}
	*f = Frame{}
	return p.read(s, f, nil) && (p.check == nil || p.check(f))
}

// withoutArguments drops the arguments of a call.
func withoutArguments(f *Frame) bool {
	if open := strings.IndexByte(f.Function, '('); open > 0 {
		f.Function = f.Function[:open]
	}
	return true
}

// frameIn reads the call in a line of any of these forms.
func frameIn(l line, f *Frame, forms []form) bool {
	for i := range forms {
		if p := &forms[i]; p.needs&^l.has == 0 && p.frame(l.string, f) {
			return true
		}
	}
	return false
}

// markForm is the form of a line that begins or ends an exception.
type markForm struct {
	kind markKind
	form
}

// namedForm is a form of what has a name.
type namedForm struct {
	name string
	form
}

// markIn is the mark in a line of any of these forms.
func markIn(l line, forms []markForm) mark {
	var f Frame // of places, which do not count
	for i := range forms {
		var m mark
		if p := &forms[i]; p.needs&^l.has == 0 && p.read(l.string, &f, &m) {
			return mark{p.kind, m.typ, m.message}
		}
	}
	return mark{}
}
