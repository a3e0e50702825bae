package trace

import "strings"

// form is how a line is written: text with fields, as in
//
//	$fn, called at $at~hs in $mod
//
// A field ends before the text that follows it, where that is first found;
// "$fn*" ends where it is last found, "$fn^" is one word, and "$file~.py|.pyx"
// ends in one of these. Blanks around a field do not count.
type form struct {
	begin  string // the text before the first field
	fields []field
	needs  marks // what each such line holds

	indented bool // it begins with a blank; "\t$fn"
	check    func(f Frame) (Frame, bool)
}

type field struct {
	what   int
	last   bool     // end where it is last found
	word   bool     // one word
	suffix []string // one of which it ends in
	end    string   // the text behind it; "": the line ends
}

// What fields hold. Those after errorField are not of frames.
const (
	skipField  = iota // anything
	fnField           // Frame.Function
	modField          // Frame.Module
	fileField         // Frame.File
	lineField         // digits, Frame.Line
	colField          // digits, Frame.Column
	numField          // digits
	hexField          // an address
	placeField        // "file:12"
	atField           // "file:12" or "file:12:3"
	errorField        // "Type: message", or a message
	classField        // the same with a type that says so
	typeField
	msgField
	fieldKinds
)

var fieldNames = map[string]int{ // bounded by the constants above
	"_": skipField, "fn": fnField, "mod": modField, "file": fileField, "line": lineField, "col": colField, "n": numField, "hex": hexField, "place": placeField,
	"at": atField, "error": errorField, "class": classField, "type": typeField, "msg": msgField,
}

// values are what the fields of a line hold.
type values [fieldKinds]string

// formOf compiles a form.
func formOf(pattern string) (p form) {
	pattern, p.indented = strings.CutPrefix(pattern, "\t")
	begin, rest, more := strings.Cut(pattern, "$")
	p.begin, p.needs = begin, marksOf(begin)
	for more {
		end := 0
		for end < len(rest) && (isLower(rest[end]) || rest[end] == '_') {
			end++
		}
		f := field{what: fieldNames[rest[:end]]}
		rest = rest[end:]
		if tail, ok := strings.CutPrefix(rest, "*"); ok {
			f.last, rest = true, tail
		}
		if tail, ok := strings.CutPrefix(rest, "^"); ok {
			f.word, rest = true, tail
		}
		if tail, ok := strings.CutPrefix(rest, "~"); ok {
			suffix := suffixMarks.trimLeft(tail)
			f.suffix, rest = strings.Split(tail[:len(tail)-len(suffix)], "|"), suffix
		}
		f.end, rest, more = strings.Cut(rest, "$")
		p.needs |= marksOf(f.end)
		switch f.what {
		case lineField, colField, numField:
			p.needs |= kinds['0']
		case placeField, atField:
			p.needs |= kinds['0'] | kinds[':']
		}
		p.fields = append(p.fields, f)
	}
	return p
}

var suffixMarks = smallLetters | marksOf(".|>")

// read reads a line that has the form.
func (p *form) read(s string, v *values) bool {
	s, ok := strings.CutPrefix(s, p.begin)
	for i := range p.fields {
		if !ok {
			return false
		}
		s = blanks.trimLeft(s)
		f, value := &p.fields[i], s
		if f.end == "" {
			s = ""
		} else if f.last {
			value, s, ok = cutLast(s, f.end)
		} else {
			value, s, ok = strings.Cut(s, f.end)
		}
		ok = ok && f.read(blanks.trim(value), v)
	}
	return ok && s == ""
}

var blanks, notInWord = marksOf(" \t"), marksOf(" \t\"'=(){}[]")

// read reads the value of a field.
func (f *field) read(value string, v *values) bool {
	switch f.what {
	case lineField, colField, numField:
		if !allDigits(value) {
			return false
		}
	case hexField:
		if len(value) <= minPlainHexID || !isHexTail(strings.TrimPrefix(value, "0x")) {
			return false
		}
	case placeField, atField:
		file, line, ok := cutDigits(value)
		if before, n, columned := cutDigits(file); columned && f.what == atField {
			file, line, v[colField] = before, n, line
		}
		v[fileField], v[lineField], value = file, line, file
		if !ok {
			return false
		}
	}
	v[f.what] = value
	return (!f.word || value != "" && !notInWord.occursIn(value)) && (f.suffix == nil || endsWithAny(value, f.suffix))
}

// frame is the call in a line of this form.
func (p *form) frame(line string) (f Frame, ok bool) {
	var v values
	if !p.read(line, &v) {
		return Frame{}, false
	}
	f = Frame{Module: v[modField], Function: v[fnField], File: v[fileField], Line: number(v[lineField]), Column: number(v[colField])}
	if p.check != nil {
		return p.check(f)
	}
	return f, true
}

// checked is a form whose calls are corrected, or rejected.
func (p form) checked(check func(f Frame) (Frame, bool)) form {
	p.check = check
	return p
}

// withoutArguments drops the arguments of a call.
func withoutArguments(f Frame) (Frame, bool) {
	if open := strings.IndexByte(f.Function, '('); open > 0 {
		f.Function = f.Function[:open]
	}
	return f, true
}

// frameIn is the call in a line of any of these forms.
func frameIn(s string, forms []form, indented bool) (Frame, bool) {
	for i := range forms {
		if forms[i].indented && !indented {
			continue
		}
		if f, ok := forms[i].frame(s); ok {
			return f, true
		}
	}
	return Frame{}, false
}

// markForm is the form of a line that begins or ends an exception.
type markForm struct {
	kind markKind
	form
}

// markIn is the mark in a line of any of these forms.
func markIn(s string, forms []markForm) mark {
	for i := range forms {
		p := &forms[i]
		var v values
		switch {
		case !p.read(s, &v):
		case v[errorField] != "":
			return markOf(p.kind, v[errorField])
		case v[classField] == "":
			return mark{p.kind, v[typeField], v[msgField]}
		default:
			if m := classHeader(v[classField]); m.kind != noMark {
				return mark{p.kind, m.typ, m.message}
			}
		}
	}
	return mark{}
}

// first are the bytes with which lines of a form begin; "" for any.
func (p *form) first(s *syntax) string {
	switch {
	case s.bare != nil:
		return ""
	case p.begin != "":
		return p.begin[:1]
	case p.fields[0].what == numField:
		return "1"
	}
	return ""
}
