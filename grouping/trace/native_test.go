package trace

import (
	"slices"
	"strings"
	"testing"
)

// ownCalls are the identities of a trace's own frames, the innermost first.
func ownCalls(t *Trace) (own []string) {
	for i, f := range t.Frames() {
		if f.InApp {
			own = append(own, string(t.Identity(i)))
		}
	}
	return own
}

// What raises and reports an error is no call of the program's own.
func TestReportsAreNotOwn(t *testing.T) {
	for name, trace := range map[string]string{
		"gdb": `
#0  __pthread_kill_implementation (threadid=<optimized out>, signo=signo@entry=6, no_tid=no_tid@entry=0) at ./nptl/pthread_kill.c:44
#1  0x00007ffff7aa8f4f in __pthread_kill_internal (signo=6, threadid=<optimized out>) at ./nptl/pthread_kill.c:78
#2  0x00007ffff7a59fb2 in __GI_raise (sig=sig@entry=6) at ../sysdeps/posix/raise.c:26
#3  0x00007ffff7a44395 in __assert_fail_base (fmt=0x7ffff7bb9a90 "%s", assertion=0x5555 "n < 3", line=14) at ./assert/assert.c:94
#4  0x0000555555556541 in shop::Cart::total (this=0x7fffffffe680, n=7) at cart.cpp:14`,
		"gdb, a signal": `
#0  crash_report (sig=11) at report.c:9
#1  <signal handler called>
#2  0x0000555555556541 in shop::Cart::total (this=0x7fffffffe680, n=7) at cart.cpp:14`,
		"Android": `
      #00 pc 000000000008  /apex/com.android.runtime/lib64/bionic/libc.so (abort+164)
      #01 pc 0000000000aa  /data/app/lib/arm64/libshop.so (logging::LogMessage::~LogMessage()+12)
      #02 pc 0000000000bb  /data/app/lib/arm64/libshop.so (shop::Cart::total(int)+40)`,
		"glog": `
    @     0x55d1c2a3b4c5  google::LogMessageFatal::~LogMessageFatal()
    @     0x55d1c2a3b4c6  base::LogMessage::~LogMessage()
    @     0x55d1c2a3b4c7  shop::Cart::total()`,
		"V8": `
 1: 0xb090e0 V8_Fatal(char const*, int, char const*, ...) [shop]
 2: 0xb090f0 shop::Cart::total() [shop]`,
		"glibc": `
./shop(dump_stack+0x1d)[0x55872910f378]
/lib/x86_64-linux-gnu/libc.so.6(gsignal+0x12)[0x7fc216039fb2]
/lib/x86_64-linux-gnu/libc.so.6(abort+0xd3)[0x7fc216024472]
./shop(tgkill+0x3)[0x55872910f378]
./shop(_ZN4shop4Cart5totalEi+0x3d)[0x557f5e510541]`,
		"macOS": `
0   libsystem_kernel.dylib   0x00000001a0b1c2d3 __pthread_kill + 8
1   libsystem_c.dylib        0x00000001a0b1c2d4 abort + 180
2   Shop                     0x0000000104a51234 shop::Cart::total(int) + 84`,
	} {
		var got Trace
		got.Read("", "", strings.Split(trace, "\n"), nil, nil)
		if own := ownCalls(&got); !slices.Equal(own, []string{"shop::Cart::total"}) {
			t.Errorf("%s: own calls %q", name, own)
		}
	}
}

// Programs have functions whose names begin like those of the system.
func TestOwnNamesLikeTheSystems(t *testing.T) {
	for _, name := range []string{"abort_order", "raise_price", "clone_cart", "startup", "panic_button", "writeback", "_ZN4shop4Cart5abortEv"} {
		if f := (Frame{Function: name}); !nativeInApp(&f) {
			t.Errorf("%s is own code", name)
		}
	}
}

// std::stoi is a template, before whose name its result is printed.
func TestTemplatesOfTheLibraryAreNotOwn(t *testing.T) {
	if nativeInApp(&Frame{Function: "int __gnu_cxx::__stoa<long, int, char, int>(long (*)(char const*, char**, int), char const*, char const*, unsigned long*, int)"}) {
		t.Error("it is no own code")
	}
}

func TestNamesOfCompilers(t *testing.T) {
	for name, want := range map[string]string{
		"_ZN4shop4Cart5totalEi": "shop::Cart::total", "_ZNK4shop4Cart5totalEv": "shop::Cart::total", "_Z5totali": "total",
		"_ZN4shop4CartC1Ei": "shop::Cart::Cart", "_ZN4shop4CartD2Ev": "shop::Cart::~Cart", "_ZN4shop4cart5total17h3e3f989126541ea9E": "shop::cart::total",
		"_ZN4shop3SumIiE3addEi": "_ZN4shop3SumIiE3addEi", "_ZN99shop": "_ZN99shop", "_Z": "_Z", "_ZN": "_ZN", "_ZNC1": "_ZNC1",
	} {
		if got := string(nativeIdentity(nil, &Frame{Function: name, InApp: true})); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// The words of sanitizers and systems for memory that was
// misused are one class, and no other words are.
func TestMemoryFaults(t *testing.T) {
	for _, typ := range []string{
		"SEGV", "heap-buffer-overflow", "heap-use-after-free", "stack-buffer-overflow", "stack-use-after-return", "global-buffer-overflow", "double-free",
		"AddressSanitizer: heap-use-after-free", "use-of-uninitialized-value", "SIGSEGV", "SIGBUS", "SIGSEGV (0xb)", "EXC_BAD_ACCESS (SIGSEGV)",
		"EXC_BAD_ACCESS / KERN_INVALID_ADDRESS", "Segmentation fault", "Segmentation fault (core dumped)", "EXCEPTION_ACCESS_VIOLATION",
		"System.AccessViolationException", "EAccessViolation", "Exception 0xc0000005", "Invalid read",
	} {
		if !memoryFault(typ) {
			t.Errorf("%q is a memory fault", typ)
		}
	}
	for _, typ := range []string{"", "SIGABRT", "SIGFPE", "EXC_BREAKPOINT", "com.acme.shop.SEGVReport", "TypeError", "stack-overflow", "data race", "Invalid cart", "bus"} {
		if memoryFault(typ) {
			t.Errorf("%q is no memory fault", typ)
		}
	}
}

// The lines that sanitizers print around a report are no messages.
func TestBannersAreNoMessages(t *testing.T) {
	stack := []string{"    #0 0x4e1b2c in shop::Cart::total(int) /src/cart.cpp:12:3"}
	for message, want := range map[string]Span{
		"==1234==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000018 at pc 0x4e1b2c bp 0x7ffc sp 0x7ffd": {Type: "heap-use-after-free"},
		"==1==ERROR: AddressSanitizer: attempting double-free on 0x602000000010 in thread T0:":                              {Type: "double-free"},
		"==7==WARNING: MemorySanitizer: use-of-uninitialized-value":                                                         {Type: "use-of-uninitialized-value"},
		"SUMMARY: AddressSanitizer: SEGV /src/cart.cpp:12:3 in shop::Cart::total(int)":                                      {Type: "SEGV"},
		"AddressSanitizer:DEADLYSIGNAL": {}, "==1234==ABORTING": {}, "no such cart": {Message: "no such cart"},
	} {
		for _, pieces := range [][]string{stack, nil} {
			var got Trace
			got.Read("", message, pieces, nil, nil)
			if s := got.Outermost(); s.Type != want.Type || s.Message != want.Message {
				t.Errorf("%q is %q, %q", message, s.Type, s.Message)
			}
		}
	}
}
