package trace

import (
	"slices"
	"strings"
)

func nativeInApp(f *Frame) bool {
	return f.Function != "" && !nativePaths.begin(f.File) && !nativeImages.begin(f.Module) && !isBelowProgram(f.Function) &&
		!nativeReports(f.Function)
}

// nativeOwn: what handles a signal, or raises one, is called
// by the system above the call in which it happened.
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

// Paths and images of systems and runtimes.
var (
	nativePaths  = prefixesOf("/usr/ /lib /system/ /apex/ /System/ /build/glibc ../sysdeps/ csu/../sysdeps/ ../csu/ ./nptl/ ./stdlib/ ./assert/ /rustc/")
	nativeImages = prefixesOf(`libc. libc- libc++ libstdc++ libpthread libm. ld-linux libsystem_ libdispatch libobjc libswift dyld UIKit Foundation
CFNetwork CoreData CoreFoundation AppKit AttributeGraph Combine JavaScriptCore SwiftUI GraphicsServices QuartzCore WebCore WebKit XCTest libart.
libandroid libgcc linux-vdso libasan libubsan libtsan vgpreload_ ntdll KERNEL32 KERNELBASE ucrtbase VCRUNTIME`)
)

// isBelowProgram recognizes functions below every program's own.
func isBelowProgram(name string) bool {
	return nativeLibc[bareName(name)] || nativeFunctions.begin(name)
}

// bareName is a function without its arguments.
func bareName(name string) string {
	name, _, _ = strings.Cut(name, "(")
	return trimEnd(name)
}

var nativeFunctions = prefixesOf(`__asan __ubsan __msan __tsan __lsan __sanitizer __interceptor __libc_ __cxa_ __GI_ __stack_chk __scrt_ __pthread_
std:: _ZNSt _ZNKSt _ZSt fuzzer:: swift_ _swift_ $ss17_assertionFailure objc_ _assertionFailure folly:: kfun:kotlin. backward:: node:: v8:: art::`,
	"operator new", "operator delete", "void std::")

// nativeLibc are functions of the standard library that sanitizers replace,
// which are printed as if the program had them, and those that begin threads.
var nativeLibc = wordSet(`calloc free malloc memchr memcmp memcpy memmove memset pthread_create read realloc realpath strcat strchr strcmp strcpy strdup
strlen strncat strncmp strncpy strtol vsnprintf write _start start clone clone3 start_thread thread_start RtlUserThreadStart BaseThreadInitThunk
invoke_main ret_from_fork ret_from_fork_asm kthread`)

// nativeReports recognizes functions by which errors are raised and
// reported. They are the same for all errors, and no calls that failed.
func nativeReports(name string) bool {
	return nativeReporters[bareName(name)] || loggerMarks&^marksOf(name) == 0 && containsAny(name, nativeLoggers)
}

var (
	nativeReporters = wordSet(`abort raise gsignal kill tgkill pthread_kill terminate die panic BUG backtrace print_backtrace dump_stack dump_stack_lvl
show_stack __warn report_bug oops_end page_fault_oops exc_page_fault asm_exc_page_fault exc_invalid_op asm_exc_invalid_op handle_bug kasan_report
print_report __die_body __might_sleep exc_general_protection asm_exc_general_protection __assert __assert_fail __assert_fail_base __assert_rtn
__assert2 __assert_perror_fail __GI___assert_fail _assert _wassert __abort_msg abort_message __android_log_assert __libc_message malloc_printerr
__fortify_fail __chk_fail g_log g_logv g_assertion_message g_assertion_message_expr _g_log_abort qAbort qFatal qt_message_fatal qt_assert
qt_assert_x RaiseException RtlRaiseException UnhandledExceptionFilter _CxxThrowException __exceptionPreprocess rust_panic rust_begin_unwind
demangling_terminate_handler V8_Fatal V8_Dcheck fatalError panicImpl`)
	nativeLoggers = strings.Fields(`LogMessage FatalMessage QMessageLogger:: logging::CheckError StackTrace::StackTrace CollectStackTrace DumpStackTrace
FailureSignalHandler StackDumpSignalHandler NSException`)
)

// loggerMarks are in each name of nativeLoggers.
var loggerMarks = marksOf("Ae")
