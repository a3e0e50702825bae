package trace

import "strings"

// Python: `File "/x/a.py", line 12, in fn`, the innermost call last, the source line and a line of carets below.

var (
	pythonIndent   = marksOf(" \t|+>") // before a frame: blanks, bars of exception groups, and the mark of Loguru
	pythonPackages = strings.Fields("/site-packages/ /dist-packages/")
	comprehensions = wordSet("<listcomp> <dictcomp> <setcomp>") // calls that Python stopped printing in release 3.12
)

func pythonLine(line string) string { return pythonIndent.trimLeft(line) }

var pythonForms = []form{
	formOf(`File "$file", line $line, in $fn`), formOf(`File "$file", line $line`), // a syntax error has no function
	// IPython, before release 8 without lines; pytest; Rich
	formOf("File $place, in $fn").checked(pythonCall), formOf("$file^~.py in $fn").checked(pythonCall), formOf("$file^~> in $fn").checked(pythonCall),
	formOf("Cell In[$_").checked(func(f *Frame) bool {
		f.File, f.Function = "<ipython-input>", "<module>"
		return true
	}),
	formOf("$place^~.py: in $fn").checked(pythonCall),
	formOf("│ $place in $fn│").checked(pythonCall),
}

// pythonCall drops arguments and class.
func pythonCall(f *Frame) bool {
	withoutArguments(f)
	f.Function = dots.afterLast(f.Function)
	return f.Function != ""
}

// pythonMark reads the lines around frames. Those of an exception group begin with bars: " | ValueError: x".
func pythonMark(l line) mark {
	if s, ok := strings.CutPrefix(withoutIndent(l.string), "+-"); ok { // "+-+---- 1 ----" above the first of a group, "+---- 2 ----"
		if strings.HasPrefix(s, "+--") {
			return mark{kind: cause}
		}
		return mark{kind: otherStack}
	}
	if bars, rest, ok := strings.Cut(l.string, "| "); ok && strings.Trim(bars, " |") == "" {
		l.string = rest
	}
	l.string = strings.TrimPrefix(l.string, "E   ") // by pytest
	if strings.HasPrefix(l.string, "Traceback (most recent call last)") || leadingSpace(l.string) > 0 {
		return mark{}
	}
	if m := markIn(l, pythonReports); m.kind != noMark {
		return m
	}
	return headerOf(l.string, func(string) bool { return true }).below()
}

// pythonReports read also the name of an error as Django prints it below the calls, and AWS Lambda above.
var pythonReports = []markForm{
	{wrapper, formOf("The above exception was the direct cause$_")}, {wrapper, formOf("During handling of the above exception$_")},
	{trailer, formOf("Exception Type: $type $_")}, {header, formOf("[ERROR]$_*\t$class")}, {header, formOf("[ERROR]$class")},
}

func pythonInApp(f *Frame) bool {
	return f.File != "" && !strings.HasPrefix(f.File, "<frozen") && !isBelow(f.File, "/lib/python", "/lib64/python", "/Lib/")
}

// pythonIdentity is module and function. The import machinery does not count.
func pythonIdentity(dst []byte, f *Frame) []byte {
	if strings.HasPrefix(f.File, "<frozen importlib") || comprehensions[f.Function] {
		return dst
	}
	if pkg, ok := after(f.File, pythonPackages...); ok {
		dst = append(dst, strings.TrimSuffix(pkg, ".py")...)
	} else {
		dst = appendModule(dst, f.File)
	}
	return append(append(dst, ':'), f.Function...)
}

// appendModule appends the name of the module in a file, or of its folder for "__init__" and "__main__".
func appendModule(dst []byte, path string) []byte {
	name := strings.TrimSuffix(baseName(path), ".py")
	switch {
	case strings.HasPrefix(name, "<ipython-input"), strings.HasPrefix(parentName(path), "ipykernel_"):
		name = "<ipython-input>"
	case strings.HasPrefix(strings.TrimPrefix(name, "<"), "command-"): // a cell of a notebook
		name = "<command>"
	case strings.HasPrefix(name, autograph):
		name = autograph
	case strings.HasPrefix(name, "<"): // code that was made at run time: "<eval_with_key>.12"
		name = strings.TrimRight(name, ".0123456789")
	case name == "__init__" || name == "__main__":
		dst = append(append(dst, parentName(path)...), '/')
	}
	return append(dst, name...)
}

// autograph begins the names of files that TensorFlow writes.
const autograph = "__autograph_generated_file"

// Python's faulthandler prints how the interpreter died, "Fatal Python error: Segmentation fault", and the innermost
// call first: `File "/x/a.py", line 12 in fn`.

var faultForms = []form{formOf(`File "$file", line $line in $fn`)}

var faultMarks = []markForm{
	{stack, formOf("Thread 0x$_")}, {stack, formOf("Current thread 0x$_")}, {header, formOf("$type~error: $msg")},
}
