package trace

import (
	"slices"
	"strings"
)

func nativeInApp(f *Frame) bool {
	return f.Function != "" && !nativePaths.begin(f.File) && !nativeImages.begin(f.Module) && !isBelowProgram(f.Function) &&
		!nativeReports(f.Function)
}

// nativeOwn: what handles a signal, or raises one, is called by the system above the call in which it happened.
func nativeOwn(frames []Frame) {
	for i := range slices.Backward(frames) {
		if name := frames[i].Function; name == signalHandler || signalReturns[bareName(name)] {
			for k := range frames[:i+1] {
				frames[k].InApp = false
			}
			return
		}
	}
}

// signalHandler is what gdb prints instead of a call.
const signalHandler = "<signal handler called>"

var signalReturns = wordSet("__restore_rt __kernel_rt_sigreturn _sigtramp KiUserExceptionDispatch KiUserExceptionDispatcher")

// nativePaths are those of systems and runtimes.
var nativePaths = prefixesOf("/usr/ /lib /system/ /apex/ /System/ /build/glibc ../sysdeps/ csu/../sysdeps/ ../csu/ ./nptl/ ./stdlib/ ./assert/ /rustc/")

// isBelowProgram recognizes functions below every program's own.
func isBelowProgram(name string) bool {
	return nativeLibc[bareName(name)] || nativeFunctions.begin(name)
}

// bareName is a function without its arguments.
func bareName(name string) string {
	name, _, _ = strings.Cut(name, "(")
	return trimEnd(name)
}

// nativeReports recognizes functions by which errors are raised and reported. They are the same for all errors, and no
// calls that failed.
func nativeReports(name string) bool {
	return nativeReporters[bareName(name)] || containsAny(name, nativeLoggers)
}
