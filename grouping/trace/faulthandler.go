package trace

import "strings"

// Python's faulthandler prints how the interpreter died, "Fatal Python error:
// Segmentation fault", and the innermost call first: `File "/x/a.py", line 12
// in fn`.

func faultFrame(line string) (Frame, bool) {
	s, ok := strings.CutPrefix(line[leadingSpace(line):], `File "`)
	file, s, placed := strings.Cut(s, `", line `)
	n, name, called := strings.Cut(s, " in ")
	return Frame{File: file, Line: number(n), Function: name}, ok && placed && called && allDigits(n) && name != ""
}

func faultMark(line string) mark {
	switch fault, ok := strings.CutPrefix(line, "Fatal Python error: "); {
	case ok:
		return mark{kind: header, typ: "Fatal Python error", message: fault}
	case strings.HasPrefix(line, "Thread 0x"), strings.HasPrefix(line, "Current thread 0x"):
		return mark{kind: stack}
	}
	return mark{}
}
