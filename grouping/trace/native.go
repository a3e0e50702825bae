package trace

import "strings"

// Native code, C, C++, Swift and Objective-C, as sanitizers,
// debuggers and operating systems print it:
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

func nativeFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	if rest, ok := strings.CutPrefix(s, "at "); ok {
		if s = rest; countDigits(s) == 0 {
			return Frame{}, false
		}
	}
	if _, rest, ok := strings.Cut(s, "[Callstack] "); ok {
		s = rest[strings.IndexByte(rest, ' ')+1:]
	}
	if rest, ok := cutIndex(s); ok {
		if f, ok := addressedFrame(rest); ok {
			return f, true
		}
		if f, ok := windowsFrame(rest); ok {
			return f, true
		}
		if rest == signalHandler {
			return Frame{Function: rest}, true
		}
		if strings.IndexByte(s[:len(s)-len(rest)], '#') >= 0 {
			return gdbCall(withoutImage(rest))
		}
		return appleFrame(rest)
	}
	for _, read := range [...]func(string) (Frame, bool){windowsFrame, lldbFrame, kernelFrame} {
		if f, ok := read(s); ok {
			return f, true
		}
	}
	return glibcFrame(s)
}

// cutIndex cuts off a leading "#12 ", "12  " or "12# ".
func cutIndex(s string) (rest string, ok bool) {
	digits := strings.TrimPrefix(s, "#")
	n := countDigits(digits)
	rest = strings.TrimPrefix(digits[n:], "#")
	if strings.HasPrefix(rest, ": 0x") { // by Node
		rest = rest[1:]
	}
	if n == 0 || n > 4 || rest == "" || rest[0] != ' ' {
		return s, false
	}
	return strings.TrimLeft(rest, " "), true
}

// withoutImage drops " (shop+0x4b1c2e)",
// which ThreadSanitizer prints after a place.
func withoutImage(s string) string {
	s = withoutBuild(s)
	if i := strings.LastIndex(s, " ("); i > 0 && s[len(s)-1] == ')' && strings.Contains(s[i:], "+0x") {
		if _, placed := nativePlace(s[strings.LastIndexByte(s[:i], ' ')+1 : i]); placed {
			return s[:i]
		}
	}
	return s
}

// windowsFrame reads "shop!Cart::total+0x1c [C:\src\cart.cpp @ 12]".
func windowsFrame(s string) (Frame, bool) {
	image, call, ok := strings.Cut(s, "!")
	if !ok || image == "" || strings.IndexByte(image, ' ') >= 0 {
		return Frame{}, false
	}
	call, place, _ := strings.Cut(call, " [")
	f := Frame{Module: image, Function: withoutOffset(call)}
	place, placed := strings.CutSuffix(place, "]")
	if placed {
		f.File, f.Line = windowsPlace(place)
	}
	return f, len(f.Function) < len(call) || placed
}

// windowsPlace reads "C:\src\cart.cpp @ 12", "cart.cpp : 12 + 0x5" and
// "C:\src\cart.cpp:12".
func windowsPlace(s string) (file string, line int) {
	s, _, _ = strings.Cut(s, " + 0x")
	for _, mark := range [...]string{" @ ", " : "} {
		if file, n, ok := strings.Cut(s, mark); ok {
			return file, number(n)
		}
	}
	file, line, _ = cutNumber(s)
	return file, line
}

// nativeForms are those of glog and Folly, and of Valgrind.
var nativeForms = []form{
	formOf("@ $hex $fn").checked(func(f *Frame) bool {
		if f.Function == "(unknown)" {
			f.Function = ""
		}
		return true
	}),
	formOf("==$n== $_ 0x$_: $fn* (in $mod)").checked(func(f *Frame) bool {
		f.Module = imageOf(f.Module)
		return true
	}),
	formOf("==$n== $_ 0x$_: $fn* ($at)"),
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

// lldbFrame reads "* frame #0: 0x0000000100003f24 shop`find(id=7) at cart.c:12:3".
func lldbFrame(s string) (Frame, bool) {
	place, call, ok := strings.Cut(s, "`")
	if !ok || !strings.Contains(place, "frame #") {
		return Frame{}, false
	}
	if f, ok := gdbCall(call); ok {
		return f, true
	}
	return Frame{Module: place[strings.LastIndexByte(place, ' ')+1:], Function: withoutOffset(call)}, true
}

// kernelFrame reads "shop_find+0x1c/0x80 [shop]", also behind "RIP: 0010:".
func kernelFrame(s string) (Frame, bool) {
	call, offset, ok := strings.Cut(s, "+0x")
	at, rest, sized := strings.Cut(offset, "/0x")
	size, module, _ := strings.Cut(rest, " ")
	name := call[strings.LastIndexAny(call, " :")+1:]
	if !ok || !sized || name == "" || !isHexTail(at) || !isHexTail(size) {
		return Frame{}, false
	}
	return Frame{Function: name, Module: strings.Trim(module, "[]")}, true
}

// addressedFrame reads a frame that begins with an address:
// "0x55 in f /a.c:1:2", "pc 0004 /lib/a.so (f+12)", "[ra] 0x12
// f() + 3 in app at a.swift:1:2".
func addressedFrame(s string) (Frame, bool) {
	if rest, ok := strings.CutPrefix(s, "pc "); ok {
		return androidFrame(rest)
	}
	s = strings.TrimPrefix(strings.TrimPrefix(s, "[ra] "), "[async] ")
	if !strings.HasPrefix(s, "0x") {
		return Frame{}, false
	}
	_, s, ok := strings.Cut(s, " ")
	if !ok {
		return Frame{}, false
	}
	s = strings.TrimLeft(s, " ")
	if strings.HasPrefix(s, "(/") { // nothing but where the library was loaded
		return Frame{Module: imageOf(s)}, true
	}
	if name, ok := strings.CutPrefix(s, "in "); ok {
		if f, ok := gdbCall(name); ok {
			return f, true
		}
		return bareCall(name)
	}
	return swiftCall(s)
}

// gdbCall reads "f (a=1) at f.c:3", "f(int) /src/f.cpp:54:3", "f () from
// /lib/libc.so.6" and "f (/lib/libc.so.6+0x20)".
func gdbCall(s string) (Frame, bool) {
	if before, place, ok := cutLast(s, " at "); ok {
		f, ok := nativePlace(place)
		f.Function = strings.TrimSpace(before)
		return f, ok
	}
	if before, image, ok := cutLast(s, " from "); ok {
		return Frame{Function: strings.TrimSpace(before), Module: baseName(image)}, strings.IndexByte(image, ' ') < 0
	}
	if i := strings.LastIndex(s, " (/"); i > 0 && strings.HasSuffix(withoutBuild(s), ")") {
		return Frame{Function: s[:i], Module: imageOf(s[i+1:])}, true
	}
	if i := strings.LastIndexByte(s, ' '); i > 0 {
		f, ok := nativePlace(s[i+1:])
		f.Function = s[:i]
		return f, ok
	}
	return Frame{}, false
}

// bareCall reads "cart_total_", whose place gfortran prints on the next line.
func bareCall(s string) (Frame, bool) {
	if s == "???" {
		return Frame{}, true
	}
	return Frame{Function: s}, s != "" && !strings.ContainsAny(s, " /")
}

// swiftCall reads "f() + 24 in shop at /src/main.swift:2:9".
func swiftCall(s string) (f Frame, ok bool) {
	if before, place, found := cutLast(s, " at "); found {
		if f, ok = nativePlace(place); ok {
			s = before
		}
	}
	if before, image, found := cutLast(s, " in "); found && strings.IndexByte(image, ' ') < 0 {
		f.Module, s = image, before
	}
	if before, image, found := cutLast(s, " ("); found {
		if image, _, found = strings.Cut(image, " + 0x"); found {
			return Frame{Function: nameOrNone(before), Module: image}, true
		}
	}
	if before, image, found := cutLast(s, " ["); found && strings.HasSuffix(image, "]") {
		return Frame{Function: before, Module: image[:len(image)-1]}, true
	}
	f.Function = withoutOffset(s)
	return f, ok || len(f.Function) < len(s)
}

// nameOrNone is "" for systemd's "n/a".
func nameOrNone(name string) string {
	if name == "n/a" {
		return ""
	}
	return name
}

func androidFrame(s string) (Frame, bool) {
	_, s, _ = strings.Cut(s, " ")
	image, call, called := strings.Cut(strings.TrimLeft(s, " "), " (")
	if image == "" || image[0] != '/' && image[0] != '[' && image[0] != '<' {
		return Frame{}, false
	}
	f := Frame{Module: baseName(image), File: image}
	if end := strings.LastIndexByte(withoutBuild(call), ')'); called && end > 0 && !strings.HasPrefix(call, "BuildId") {
		f.Function = withoutOffset(call[:end])
	}
	return f, true
}

// appleFrame reads "Shop 0x0000000104a5 -[Cart total:] + 84";
// the name of the image may hold blanks.
func appleFrame(s string) (Frame, bool) {
	i := strings.Index(s, " 0x")
	if i < 1 {
		return Frame{}, false
	}
	_, call, ok := strings.Cut(s[i+1:], " ")
	if !ok {
		return Frame{}, false
	}
	f := Frame{Module: strings.TrimSpace(s[:i])}
	if before, place, ok := cutLast(call, " ("); ok && strings.HasSuffix(place, ")") {
		if in, ok := nativePlace(place[:len(place)-1]); ok {
			f.File, f.Line, call = in.File, in.Line, before
		}
	}
	f.Function = withoutOffset(strings.TrimSpace(call))
	if strings.HasPrefix(f.Function, "0x") { // not symbolicated
		f.Function = ""
	}
	return f, true
}

// glibcFrame reads "./shop(_ZN4Cart5totalEv+0x15) [0x400e]".
func glibcFrame(s string) (Frame, bool) {
	if !strings.HasSuffix(s, "]") {
		return Frame{}, false
	}
	address := strings.LastIndex(s, "[0x")
	open := strings.IndexByte(s, '(')
	if address < 0 || open < 1 || open > address || strings.IndexByte(s[:open], ' ') >= 0 {
		return Frame{}, false
	}
	end := strings.LastIndexByte(s[:address], ')')
	if end < open {
		return Frame{}, false
	}
	return Frame{Module: baseName(s[:open]), File: s[:open], Function: withoutOffset(s[open+1 : end])}, true
}

// nativePlace reads "/src/cart.cpp:54:3".
func nativePlace(s string) (Frame, bool) {
	file, line, column, ok := cutPosition(s)
	return Frame{File: file, Line: line, Column: column}, ok && strings.IndexByte(baseName(file), '.') >= 0
}

// imageOf is the name of the library in "(/lib/libc.so.6+0x20830)".
func imageOf(s string) string {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "("), "+0x")
	return baseName(strings.TrimSuffix(s, ")"))
}

// withoutBuild drops " (BuildId: 8f3a)".
func withoutBuild(s string) string {
	if i := strings.Index(s, " (BuildId"); i > 0 {
		return s[:i]
	}
	return s
}

// withoutOffset drops "+0x15", " + 84" and "+12".
func withoutOffset(s string) string {
	if i := strings.LastIndexByte(s, '+'); i >= 0 && isHexTail(strings.TrimPrefix(strings.TrimSpace(s[i+1:]), "0x")) {
		return strings.TrimSpace(s[:i])
	}
	return strings.TrimSpace(s)
}
