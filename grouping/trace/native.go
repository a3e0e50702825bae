package trace

import (
	"bytes"
	"slices"
	"strings"
)

// Native code, C, C++, Swift and Objective-C, as sanitizers, debuggers and operating systems print it:
//
//	#2 0x55866ec70586 in shop::Cart::total(int) /src/cart.cpp:54:3     sanitizers
//	#1  0x00005555 in total (n=1) at cart.c:54                         gdb
//	./shop(_ZN4Cart5totalEv+0x15) [0x400e]                             glibc
//	#01 pc 0004a1b2  /data/app/libshop.so (Cart::total()+12)           Android
//	3   Shop    0x0000000104a5 -[Cart total:] + 84                     Apple
//	frame #1: 0x000055 shop`total(n=1) at cart.c:54:3                  lldb
//	shop_total+0x1c/0x80 [shop]                                        Linux
//	 1# shop::Cart::total() at /src/cart.cpp:54                        Boost
//	shop!Cart::total+0x1c [C:\src\cart.cpp @ 54]                       Windows
//	shop!Cart::total() [cart.cpp : 54 + 0x5]                           Breakpad
//	#2  0x000055d1 cart_total (shop + 0x4a1b2c)                        systemd
//	@     0x55d1c2a3b4c5  shop::Cart::total()                          glog, Folly
//	1: 0xb090e0 node::Abort() [node]                                   Node
//	at 2   shop.kexe   0x1043c5e2a   kfun:shop.Cart#total(){} + 378    Kotlin
//	==4711==    at 0x401189: Cart::total(int) (cart.cpp:12)            Valgrind
//	[Callstack] 0x00007ff6 Shop.exe!ACart::Total() [C:\src\Cart.cpp:12] Unreal

func nativeFrame(l line, f *Frame) bool {
	s := withoutIndent(l.string)
	if rest, ok := strings.CutPrefix(s, "at "); ok {
		if s = rest; countDigits(s) == 0 {
			return false
		}
	}
	if l.has.has('[') {
		if _, rest, ok := strings.Cut(s, "[Callstack] "); ok {
			s = rest[strings.IndexByte(rest, ' ')+1:]
		}
	}
	rest, numbered := cutIndex(s)
	if l.string = rest; !numbered {
		return frameIn(l, f, windowsForms) || frameIn(l, f, plainForms)
	}
	if frameIn(l, f, androidForms) || addressedFrame(l, f) || frameIn(l, f, windowsForms) {
		return true
	}
	if *f = (Frame{Function: rest}); rest == signalHandler {
		return true
	}
	if strings.IndexByte(s[:len(s)-len(rest)], '#') >= 0 {
		l.string = withoutImage(rest)
		return frameIn(l, f, gdbForms)
	}
	return frameIn(l, f, appleForms)
}

// cutIndex cuts off a leading "#12 ", "12  " or "12# ".
func cutIndex(s string) (rest string, ok bool) {
	digits := strings.TrimPrefix(s, "#")
	n := countDigits(digits)
	rest = strings.TrimPrefix(digits[n:], "#")
	if strings.HasPrefix(rest, ": 0x") { // by Node
		rest = rest[1:]
	}
	if n == 0 || n > 4 || !strings.HasPrefix(rest, " ") {
		return s, false
	}
	return withoutIndent(rest), true
}

// withoutImage drops " (BuildId: 8f3a)", and " (shop+0x4b1c2e)", which ThreadSanitizer prints after a place.
func withoutImage(s string) string {
	s, _, _ = strings.Cut(s, " (BuildId")
	before, image, ok := cutLast(s, " (")
	file, _, _, placed := cutPosition(before[strings.LastIndexByte(before, ' ')+1:])
	if ok && placed && isSource(&Frame{File: file}) && strings.Contains(image, "+0x") {
		return before
	}
	return s
}

// windowsForms are those of Windows, Breakpad and Unreal.
var windowsForms = []form{
	formOf("$mod^!$fn [$file @ $line]").checked(dropOffset), formOf("$mod^!$fn [$file : $line + 0x$_]").checked(dropOffset),
	formOf("$mod^!$fn [$place]").checked(dropOffset), formOf("$mod^!$fn [$_]").checked(dropOffset), formOf("$mod^!$fn").checked(hasOffset),
}

func dropOffset(f *Frame) bool {
	f.Function = withoutOffset(f.Function)
	return true
}

func hasOffset(f *Frame) bool {
	before := len(f.Function)
	return dropOffset(f) && len(f.Function) < before
}

// nativeForms are those of glog and Folly, and of Valgrind.
var nativeForms = []form{
	formOf("@ $hex $fn").checked(isNamed), formOf("==$n== $_ 0x$_: $fn* (in $mod)").checked(inImage), formOf("==$n== $_ 0x$_: $fn* ($at)"),
}

// backwardForms are those of the library backward-cpp.
var backwardForms = []form{
	formOf(`#$n Source "$file", line $line, in $fn`).checked(withoutAddress),
	formOf(`#$n Object "$file", at $_, in $fn`).checked(func(f *Frame) bool {
		f.Module = baseName(f.File)
		return withoutAddress(f)
	}),
}

func withoutAddress(f *Frame) bool {
	f.Function, _, _ = strings.Cut(f.Function, " [0x")
	return true
}

// plainForms are those of lldb, Linux, also behind "RIP: 0010:", and glibc.
var plainForms = []form{
	formOf("$_frame #$n: $_`$fn* at $at").checked(isSource), formOf("$_frame #$n: $_ $mod^`$fn").checked(dropOffset),
	formOf("$fn+0x$_^/0x$_^ [$mod]").checked(lastWord), formOf("$fn+0x$_^/0x$_^").checked(lastWord),
	formOf("$file^($fn*) [0x$_]").checked(ofImage), formOf("$file^($fn*)[0x$_]").checked(ofImage),
}

func lastWord(f *Frame) bool {
	f.Function = f.Function[strings.LastIndexAny(f.Function, " :")+1:]
	return f.Function != ""
}

// ofImage takes the image for the module.
func ofImage(f *Frame) bool {
	f.Module = baseName(f.File)
	return dropOffset(f)
}

func isSource(f *Frame) bool { return strings.IndexByte(baseName(f.File), '.') >= 0 }

// addressedFrame reads a frame that begins with an address: "0x55 in f /a.c:1:2", "pc 0004 /lib/a.so (f+12)",
// "[ra] 0x12 f() + 3 in app at a.swift:1:2".
func addressedFrame(l line, f *Frame) bool {
	s := withoutBegins(l.string, "[ra] ", "[async] ")
	_, call, ok := strings.Cut(s, " ")
	if !ok || !strings.HasPrefix(s, "0x") {
		return false
	}
	call = withoutIndent(call)
	if strings.HasPrefix(call, "(/") { // nothing but where the library was loaded
		*f = Frame{Module: call}
		return inImage(f)
	}
	name, in := strings.CutPrefix(call, "in ")
	if l.string = name; in {
		return frameIn(l, f, gdbForms) || bareForm.frame(name, f)
	}
	return frameIn(l, f, swiftForms)
}

var gdbForms = []form{
	formOf("$fn* at $at").checked(isSource),
	formOf("$fn* from $mod^").checked(inImage), formOf("$fn* (/$mod)$_").checked(inImage), formOf("$fn* $at").checked(isSource),
}

var (
	// bareForm reads "cart_total_", whose place gfortran prints on the next line.
	bareForm      = formOf("$fn").checked(func(f *Frame) bool { return !strings.ContainsAny(f.Function, " /") && isNamed(f) })
	signalReturns = wordSet("__restore_rt __kernel_rt_sigreturn _sigtramp KiUserExceptionDispatch KiUserExceptionDispatcher")
	// nativePaths are those of systems and runtimes.
	nativePaths = prefixesOf("/usr/ /lib /system/ /apex/ /System/ /build/glibc ../sysdeps/ csu/../sysdeps/ ../csu/ ./nptl/ ./stdlib/ ./assert/ /rustc/")
	signals     = wordSet("SIGBUS SIGFPE SIGILL SIGSEGV SIGSYS SIGTRAP")
)

// isNamed drops what is printed for an unknown name.
func isNamed(f *Frame) bool {
	if f.Function == "(unknown)" || f.Function == "n/a" || f.Function == "???" {
		f.Function = ""
	}
	return true
}

// inImage finds the name of the library in "(/lib/libc.so.6+0x20830)".
func inImage(f *Frame) bool {
	image, _, _ := strings.Cut(strings.TrimPrefix(f.Module, "("), "+0x")
	f.Module = baseName(strings.TrimSuffix(image, ")"))
	return true
}

// swiftForms are those of Swift, and of systemd and Node.
var swiftForms = []form{
	formOf("$fn* in $mod^ at $at").checked(dropOffset), formOf("$fn* at $at").checked(dropOffset),
	formOf("$fn* ($mod + 0x$_").checked(isNamed),
	formOf("$fn* [$mod]"), formOf("$fn* in $mod^").checked(hasOffset), formOf("$fn").checked(hasOffset),
}

var androidForms = []form{
	formOf("pc $_^ $file ($fn*) (BuildId$_").checked(isImage), formOf("pc $_^ $file (BuildId$_").checked(isImage),
	formOf("pc $_^ $file ($fn*)").checked(isImage), formOf("pc $_^ $file").checked(isImage),
}

func isImage(f *Frame) bool {
	f.File, _, _ = strings.Cut(f.File, " (")
	return f.File != "" && strings.IndexByte("/[<", f.File[0]) >= 0 && ofImage(f)
}

// appleForms read "Shop 0x0000000104a5 -[Cart total:] + 84"; the name of the image may hold blanks.
var appleForms = []form{
	formOf("$mod 0x$_ $fn* ($at)").checked(func(f *Frame) bool { return isSource(f) && isSymbol(f) }),
	formOf("$mod 0x$_ $fn").checked(isSymbol),
}

func isSymbol(f *Frame) bool {
	if dropOffset(f); strings.HasPrefix(f.Function, "0x") { // not symbolicated
		f.Function = ""
	}
	return f.Module != ""
}

// withoutOffset drops "+0x15", " + 84" and "+12".
func withoutOffset(s string) string {
	if before, offset, ok := cutLast(s, "+"); ok && isHexTail(strings.TrimPrefix(strings.TrimSpace(offset), "0x")) {
		s = before
	}
	return strings.TrimSpace(s)
}

// nativeIdentity is the function without arguments, template parameters and suffixes of compilers and linkers; the
// library where the function has no name.
func nativeIdentity(dst []byte, f *Frame) []byte {
	if !f.InApp && nativeReports(f.Function) || f.Function == signalHandler {
		return dst
	}
	start := len(dst)
	dst, ok := appendUnmangled(dst, f.Function)
	if !ok {
		dst = appendNative(dst, f.Function)
	}
	if len(dst) == start && f.Module != "" {
		return append(appendFileName(dst, f.Module), ':')
	}
	return dst
}

func appendNative(dst []byte, name string) []byte {
	name = withoutBegins(name, "specialized ", "merged ", "@objc ", "partial apply for ", "thunk for ", "generic ") // by Swift, of copies
	if block := strings.Index(name, "_block_invoke"); block > 0 {
		name = strings.TrimLeft(name[:block], "_0123456789")
	}
	if strings.HasPrefix(name, "-[") || strings.HasPrefix(name, "+[") {
		return append(dst, name...)
	}
	depth := 0
	for i := 0; i < len(name); i++ {
		rest := name[i:]
		switch c := name[i]; {
		case depth == 0 && strings.HasPrefix(rest, "(anonymous namespace)"):
			dst, i = append(dst, "(anonymous)"...), i+len("(anonymous namespace)")-1
		case c == '<':
			depth++
		case c == '>' && depth > 0:
			depth--
		case depth > 0:
		case c == '(', c == '[', c == '.' && beginsWithAny(rest, ".isra.", ".part.", ".constprop.", ".cold", ".llvm."):
			return bytes.TrimRight(dst, " ")
		case c == '#' && countDigits(rest[1:]) > 0:
			i += countDigits(rest[1:])
		default:
			dst = append(dst, c)
		}
	}
	return bytes.TrimRight(dst, " ")
}

// appendUnmangled appends a name of C++ as debuggers print it: "shop::Cart::total" of "_ZN4shop4Cart5totalEi". It does
// not read names with type arguments.
func appendUnmangled(dst []byte, name string) ([]byte, bool) {
	s, ok := strings.CutPrefix(name, "_Z")
	if !ok {
		return dst, false
	}
	s, nested := strings.CutPrefix(s, "N")
	s = strings.TrimLeft(s, "KV")
	start, last := len(dst), ""
	for digits := countDigits(s); digits > 0; digits = countDigits(s) {
		n := number(s[:digits])
		if s = s[digits:]; n == 0 || n > len(s) {
			return dst[:start], false
		}
		if last, s = s[:n], s[n:]; n == rustHash && last[0] == 'h' && isHexTail(last[1:]) {
			break
		}
		dst = append(append(dst, last...), "::"...)
		if !nested {
			return dst[:len(dst)-2], true
		}
	}
	if len(s) > 1 && (s[0] == 'C' || s[0] == 'D') && isDigit(s[1]) { // constructor or destructor
		if s[0] == 'D' {
			dst = append(dst, '~')
		}
		return append(dst, last...), last != ""
	}
	if len(dst) == start || s == "" || s[0] != 'E' {
		return dst[:start], false
	}
	return dst[:len(dst)-2], true
}

func nativeInApp(f *Frame) bool {
	return f.Function != "" && !nativePaths.begin(f.File) && !nativeImages.begin(f.Module) && !nativeFunctions.begin(f.Function) &&
		!nativeLibc[bareName(f.Function)] && !nativeReports(f.Function)
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

const (
	signalHandler = "<signal handler called>" // by gdb, instead of a call
	rustHash      = 17                        // characters of the hash that Rust puts at the end of names
)

// bareName is a function without its arguments.
func bareName(name string) string {
	name, _, _ = strings.Cut(name, "(")
	return trimEnd(name)
}

func nativeReports(name string) bool {
	return nativeReporters[bareName(name)] || containsAny(name, nativeLoggers)
}

// nativeLine drops the process that Valgrind puts before each line.
func nativeLine(line string) string {
	s := strings.TrimSpace(line)
	if _, rest, ok := strings.Cut(s, "== "); ok && s[0] == '=' {
		return strings.TrimSpace(rest)
	}
	return s
}

var nativeMarks = []markForm{
	{header, formOf("Uncaught Kotlin exception: $error")}, {header, formOf("FATAL ERROR: $msg")}, // by Node
	{stack, formOf("Previous $_")}, {stack, formOf("freed by thread$_")}, {stack, formOf("previously allocated by$_")},
	{stack, formOf("allocated by thread$_")}, {stack, formOf("SUMMARY: $_")}, {stack, formOf("Thread $_")},
	{stack, formOf("Uninitialized value was created$_")}, {stack, formOf("Address 0x$_")}, {stack, formOf("Process terminating$_")},
	{messageBelow, formOf("terminate called after throwing an instance of '$type'")},
	{header, formOf("$_: Fatal error: $msg")}, {header, formOf("$_: runtime error: $msg")}, // by Swift, UndefinedBehaviorSanitizer
}

func nativeMark(l line) mark {
	if fault, ok := sanitizerFault(l.string); ok {
		return mark{kind: header, typ: fault}
	}
	if i := strings.Index(l.string, ": Assertion `"); i >= 0 {
		return mark{kind: header, message: l.string[i+2:]}
	}
	if fault, _, ok := strings.Cut(l.string, " of size "); ok && strings.HasPrefix(fault, "Invalid ") { // by Valgrind
		return mark{kind: header, typ: fault}
	}
	if strings.Contains(l.string, "SIG") { // "*** Signal 11 (SIGSEGV)"; one that a program raises to end itself says nothing
		if signal := wordOf(l.string, signals); signal != "" {
			return mark{kind: header, typ: signal}
		}
	}
	return mark{}
}

// sanitizerFault reads "==1==ERROR: AddressSanitizer: attempting double-free
// on 0x60" and "WARNING: ThreadSanitizer: data race (pid=1)".
func sanitizerFault(s string) (fault string, ok bool) {
	_, fault, ok = strings.Cut(s, "Sanitizer: ")
	for _, end := range [...]string{" on ", " (", ": ", " /"} {
		fault, _, _ = strings.Cut(fault, end)
	}
	return strings.TrimPrefix(fault, "attempting "), ok
}

// withoutBanner drops a message that is a line of a sanitizer's report.
func (s *Span) withoutBanner() {
	if !strings.Contains(s.Message, "Sanitizer:") && !strings.HasSuffix(s.Message, "=ABORTING") {
		return
	}
	if fault, _ := sanitizerFault(s.Message); s.Type == "" {
		s.Type = fault
	}
	s.Message = ""
}

// wordOf is the first word of a text that is in a set.
func wordOf(s string, set map[string]bool) string {
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r > '~' || r != '_' && r != '-' && !isAlnum(byte(r)) }) {
		if set[word] {
			return word
		}
	}
	return ""
}

// memoryFault reports whether a type only says that memory was misused. Which
// word a build, a sanitizer or a system has for it is chance.
func memoryFault(typ string) bool {
	return wordOf(typ, memoryFaults) != "" ||
		beginsWithAny(typ, "Segmentation fault", "segmentation fault", "Bus error", "Access violation", "Invalid read", "Invalid write", "Invalid free")
}
