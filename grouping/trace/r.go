package trace

import "strings"

// R, as traceback prints it, the innermost call first: "3:
// total(cart) at cart.R#12".

func rFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	n, call, ok := strings.Cut(s, ": ")
	if !ok || !allDigits(n) {
		return Frame{}, false
	}
	f := Frame{}
	if before, place, placed := cutLast(call, " at "); placed {
		file, at, numbered := strings.Cut(place, "#")
		if numbered && allDigits(at) {
			f.File, f.Line, call = file, number(at), before
		}
	}
	open := strings.IndexByte(call, '(')
	if open < 1 || !strings.HasSuffix(call, ")") || strings.ContainsAny(call[:open], " =<") {
		return Frame{}, false
	}
	f.Function = call[:open]
	return f, true
}

func rMark(line string) mark {
	if _, message, ok := strings.Cut(line, " : "); ok && strings.HasPrefix(line, "Error in ") {
		return mark{kind: header, message: message}
	}
	return mark{}
}

// rCore are functions that raise errors or make calls.
var rCore = wordSet(`stop stopifnot warning eval evalq withCallingHandlers tryCatch tryCatchList tryCatchOne doTryCatch try source withVisible
signalCondition do.call`)

func rInApp(f *Frame) bool { return !rCore[f.Function] && !strings.Contains(f.Function, "::") }

func rIdentity(dst []byte, f *Frame) []byte { return append(dst, f.Function...) }
