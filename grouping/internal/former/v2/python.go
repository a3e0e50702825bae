package v2

import (
	"strings"

	"github.com/weirlog/weir/grouping"
)

// Python: `File "/x/a.py", line 12, in fn`, the innermost call last, the
// source line and a line of carets below.

func pythonFrame(line string) (grouping.Frame, bool) {
	s := strings.TrimLeft(line, " \t|+") // the bars are those of exception groups
	if !strings.HasPrefix(s, `File "`) {
		return grouping.Frame{}, false
	}
	s = s[len(`File "`):]
	quote := strings.Index(s, `", line `)
	if quote < 0 {
		return grouping.Frame{}, false
	}
	f := grouping.Frame{File: s[:quote]}
	s = s[quote+len(`", line `):]
	digits := 0
	for digits < len(s) && isDigit(s[digits]) {
		digits++
	}
	f.Line = number(s[:digits])
	if name, ok := strings.CutPrefix(s[digits:], ", in "); ok {
		f.Function = strings.TrimSpace(name)
	}
	return f, digits > 0 && f.Function != ""
}

func pythonMark(line string) mark {
	if line == "" {
		return mark{}
	}
	s := strings.TrimLeft(line, " \t|+")
	switch {
	case strings.HasPrefix(s, "Traceback (most recent call last)"):
		return mark{}
	case strings.HasPrefix(s, "The above exception was the direct cause"), strings.HasPrefix(s, "During handling of the above exception"):
		return mark{kind: next}
	case len(s) != len(line):
		return mark{}
	}
	typ, message, ok := typeAndMessage(s)
	if !ok {
		return mark{}
	}
	return mark{trailer, typ, message}
}

func pythonInApp(f *grouping.Frame) bool {
	if f.File == "" || strings.HasPrefix(f.File, "<frozen") {
		return false
	}
	if _, ok := after(f.File, "/site-packages/", "/dist-packages/"); ok {
		return false
	}
	rest, ok := after(f.File, "/lib/python", "/lib64/python", "/Lib/")
	return !ok || strings.HasSuffix(f.File, "/lib/python") || rest == ""
}

// pythonIdentity is module and function. The interpreter's
// import machinery does not count.
func pythonIdentity(dst []byte, f *grouping.Frame) []byte {
	if strings.HasPrefix(f.File, "<frozen importlib") {
		return dst
	}
	if pkg, ok := after(f.File, "/site-packages/", "/dist-packages/"); ok {
		dst = append(dst, strings.TrimSuffix(pkg, ".py")...)
	} else {
		dst = appendModule(dst, f.File)
	}
	return append(append(dst, ':'), f.Function...)
}

// appendModule appends the name of the module in a file: that of
// the folder for a package's own file.
func appendModule(dst []byte, path string) []byte {
	name := strings.TrimSuffix(baseName(path), ".py")
	switch {
	case strings.HasPrefix(name, "<ipython-input"):
		name = "<ipython-input>"
	case name == "__init__" || name == "__main__":
		dst = append(append(dst, parentName(path)...), '/')
	}
	return append(dst, name...)
}
