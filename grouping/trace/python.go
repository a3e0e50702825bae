package trace

import "strings"

// Python: `File "/x/a.py", line 12, in fn`, the innermost call last, the
// source line and a line of carets below.

// pythonIndent may be before a frame: blanks, bars
// of exception groups, and the mark of Loguru.
var pythonIndent = marksOf(" \t|+>")

func pythonFrame(line string) (Frame, bool) {
	s := pythonIndent.trimLeft(line)
	s, ok := strings.CutPrefix(s, `File "`)
	if !ok {
		return notebookFrame(line)
	}
	quote := strings.Index(s, `", line `)
	if quote < 0 {
		return Frame{}, false
	}
	f := Frame{File: s[:quote]}
	s = s[quote+len(`", line `):]
	digits := countDigits(s)
	f.Line = number(s[:digits])
	name, called := strings.CutPrefix(s[digits:], ", in ")
	f.Function = strings.TrimSpace(name)
	return f, digits > 0 && (called && f.Function != "" || s[digits:] == "") // a syntax error has a place and no function
}

// notebookFrame reads "File /app/cart.py:12, in total(self)" and "Cell In[3],
// line 2", as IPython prints calls, and "│ /app/cart.py:12 in total │" of Rich.
func notebookFrame(line string) (Frame, bool) {
	if f, ok := bareFrame(line); ok {
		return f, true
	}
	if strings.HasPrefix(line, "Cell In[") {
		return Frame{File: "<ipython-input>", Function: "<module>"}, true
	}
	s, boxed := strings.CutPrefix(line, "│ ")
	if boxed {
		s = strings.TrimRight(s, " │")
	} else if s, boxed = strings.CutPrefix(line, "File "); !boxed {
		return Frame{}, false
	}
	place, name, called := strings.Cut(s, " in ")
	file, n, ok := cutNumber(strings.TrimSuffix(place, ","))
	name, _, _ = strings.Cut(name, "(")
	return Frame{File: file, Line: n, Function: dots.afterLast(name)}, ok && called && name != ""
}

// bareFrame reads "~/cart.py in total(self)" and "<ipython-input-3-8f3a> in
// total(self)" of IPython before release 8, and "cart.py:12: in total" of pytest.
func bareFrame(line string) (Frame, bool) {
	place, name, ok := strings.Cut(line, " in ")
	if !ok || strings.IndexByte(place, ' ') >= 0 {
		return Frame{}, false
	}
	f := Frame{File: place}
	if file, n, numbered := cutNumber(strings.TrimSuffix(place, ":")); numbered && place[len(place)-1] == ':' {
		f.File, f.Line = file, n
	}
	f.Function, _, _ = strings.Cut(name, "(")
	return f, f.Function != "" && (strings.HasSuffix(f.File, ".py") || strings.HasPrefix(f.File, "<ipython-input-"))
}

// pythonMark reads the lines around frames. Those of an
// exception group begin with bars: " | ValueError: x".
func pythonMark(line string) mark {
	if m := pythonMember(line); m.kind != noMark {
		return m
	}
	s := strings.TrimPrefix(withoutBars(line), "E   ") // by pytest
	switch {
	case s == "", strings.HasPrefix(s, "Traceback (most recent call last)"), leadingSpace(s) > 0:
		return mark{}
	case strings.HasPrefix(s, "The above exception was the direct cause"), strings.HasPrefix(s, "During handling of the above exception"):
		return mark{kind: wrapper}
	}
	if m := pythonReport(s); m.kind != noMark {
		return m
	}
	typ, message, ok := typeAndMessage(s)
	if !ok {
		return mark{}
	}
	return mark{trailer, typ, message}
}

// pythonReport reads the name of an error as AWS
// Lambda prints it above, "[ERROR] KeyError: 'x'", and
// Django below, "Exception Type: KeyError at /a/".
func pythonReport(s string) mark {
	if typ, ok := strings.CutPrefix(s, "Exception Type: "); ok {
		typ, _, _ = strings.Cut(typ, " ")
		return mark{kind: trailer, typ: typ}
	}
	if rest, ok := strings.CutPrefix(s, "[ERROR]"); ok {
		return classHeader(rest[strings.LastIndexByte(rest, '\t')+1:])
	}
	return mark{}
}

// withoutBars drops an exception group's bars.
func withoutBars(line string) string {
	if bar := strings.Index(line, "| "); bar >= 0 && strings.Trim(line[:bar], " |") == "" {
		return line[bar+len("| "):]
	}
	return line
}

// pythonMember reads the line above each exception of a group:
// "+-+---- 1 ----". The first is taken for the group's cause.
func pythonMember(line string) mark {
	s := line[leadingSpace(line):]
	switch {
	case !strings.HasPrefix(s, "+-"):
		return mark{}
	case strings.HasPrefix(s, "+-+--"):
		return mark{kind: cause}
	}
	return mark{kind: otherStack}
}

func pythonInApp(f *Frame) bool {
	if f.File == "" || strings.HasPrefix(f.File, "<frozen") {
		return false
	}
	if _, ok := after(f.File, "/site-packages/", "/dist-packages/"); ok {
		return false
	}
	rest, ok := after(f.File, "/lib/python", "/lib64/python", "/Lib/")
	return !ok || strings.HasSuffix(f.File, "/lib/python") || rest == ""
}

// pythonIdentity is module and function. The import machinery does not count.
func pythonIdentity(dst []byte, f *Frame) []byte {
	if strings.HasPrefix(f.File, "<frozen importlib") || comprehensions[f.Function] {
		return dst
	}
	if pkg, ok := after(f.File, "/site-packages/", "/dist-packages/"); ok {
		dst = append(dst, strings.TrimSuffix(pkg, ".py")...)
	} else {
		dst = appendModule(dst, f.File)
	}
	return append(append(dst, ':'), f.Function...)
}

// comprehensions are calls that Python stopped printing in release 3.12.
var comprehensions = wordSet("<listcomp> <dictcomp> <setcomp>")

// appendModule appends the name of the module in a
// file, or of its folder for "__init__" and "__main__".
func appendModule(dst []byte, path string) []byte {
	name := strings.TrimSuffix(baseName(path), ".py")
	switch {
	case strings.HasPrefix(name, "<ipython-input"), strings.HasPrefix(parentName(path), "ipykernel_"):
		name = "<ipython-input>"
	case strings.HasPrefix(name, "<command-"), strings.HasPrefix(name, "command-"): // a cell of a notebook
		name = "<command>"
	case strings.HasPrefix(name, "<") || strings.HasPrefix(name, autograph): // code that was made at run time
		name = withoutCounter(name)
	case name == "__init__" || name == "__main__":
		dst = append(append(dst, parentName(path)...), '/')
	}
	return append(dst, name...)
}

// autograph begins the names of files that TensorFlow writes.
const autograph = "__autograph_generated_file"

// withoutCounter drops the number of a generated file: "<eval_with_key>.12".
func withoutCounter(name string) string {
	if strings.HasPrefix(name, autograph) {
		return autograph
	}
	return strings.TrimRight(name, ".0123456789")
}

// Python's faulthandler prints how the interpreter died, "Fatal Python error:
// Segmentation fault", and the innermost call first: `File "/x/a.py", line 12
// in fn`.

func faultFrame(line string) (Frame, bool) {
	s, ok := strings.CutPrefix(line[leadingSpace(line):], `File "`)
	file, s, placed := strings.Cut(s, `", line `)
	n, name, called := strings.Cut(s, " in ")
	return Frame{File: file, Line: number(n), Function: name}, ok && placed && called && allDigits(n) && name != ""
}

var faultIntros = []intro{{"Thread 0x", stack, nil}, {"Current thread 0x", stack, nil}}

func faultMark(line string) mark {
	if fault, ok := strings.CutPrefix(line, "Fatal Python error: "); ok {
		return mark{kind: header, typ: "Fatal Python error", message: fault}
	}
	return mark{}
}
