package grouping

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runtime prints calls as one runtime does, with
// random values for what changes between occurrences.
type runtime struct {
	name  string
	call  func(n noise, fn string, i int) string
	after []string // lines that are no own calls and may stand anywhere below the first
	last  bool     // the innermost call is printed last
}

// noise draws what must not change a hash.
type noise struct{ *rand.Rand }

func (n noise) line() int       { return 1 + n.IntN(5000) }
func (n noise) address() string { return fmt.Sprintf("0x%012x", n.Uint64()>>16) }
func (n noise) path() string {
	return []string{"/app", "/srv/releases/20240101", "/home/alice/work/shop", "/var/www/html", "/opt/x/y"}[n.IntN(5)]
}
func (n noise) version() string { return fmt.Sprintf("%d.%d.%d", n.IntN(9), n.IntN(20), n.IntN(20)) }
func (n noise) host() string {
	return []string{"https://shop.example", "https://cdn7.example.net", "http://localhost:3000"}[n.IntN(3)]
}

// built is the name of a script as one of the bundlers writes it.
func (n noise) built(stem string) string {
	const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	const base32, hex = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdef"
	return []string{
		stem + "-" + n.draw(8, base64) + ".js",       // Vite, Rollup
		stem + "-" + n.draw(8, base32) + ".js",       // esbuild
		stem + "." + n.draw(8, hex) + ".js",          // Parcel
		stem + "." + n.draw(20, hex) + ".js",         // webpack
		stem + "_" + n.draw(8, hex) + "._.js",        // Turbopack
		stem + ".js?v=" + n.version(),                // none
		stem + "." + n.draw(8, hex) + ".js?t=" + "1", // Vite's server
	}[n.IntN(7)]
}

// draw draws a hash that is no word by chance;
// see TestBuildHashes for those that are.
func (n noise) draw(length int, letters string) string {
	for {
		if drawn := draw(n.Rand, letters, length); !wordLike.MatchString(drawn) {
			return drawn
		}
	}
}

var wordLike = regexp.MustCompile("[a-z]{4}|[A-Z]{4}")

var runtimes = []runtime{
	{name: "java", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("\tat %scom.acme.%s.%s(%s.java:%d)%s", []string{"", "app//"}[n.IntN(2)], title(fn), fn, title(fn), n.line(), []string{"", " ~[shop-" + n.version() + ".jar:?]"}[n.IntN(2)])
	}, after: []string{"\tat jdk.internal.reflect.GeneratedMethodAccessor12.invoke(Unknown Source)", "\tat java.base/java.lang.Thread.run(Thread.java:829)", "\t... 12 more"}},
	{name: "java lambdas", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("\tat com.acme.%s$$EnhancerBySpringCGLIB$$%x.lambda$%s$%d(%s.java:%d)", title(fn), n.Uint32(), fn, n.IntN(9), title(fn), n.line())
	}, after: []string{"\tat com.acme.Shop$$Lambda$14/0x0000000800c8.apply(Unknown Source)"}},
	{name: "node", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("    at %s%s (%s%s/src/%s.js:%d:%d)", []string{"", "async "}[n.IntN(2)], fn, []string{"", "file://"}[n.IntN(2)], n.path(), fn, n.line(), n.line())
	}, after: []string{"    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)", "    at new Promise (<anonymous>)"}},
	{name: "chrome", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf("    at %s%s (%s/assets/%s:%d:%d)", []string{"", "Shop."}[n.IntN(2)], fn, n.host(), n.built("index"), n.line(), n.line())
	}, after: []string{"    at https://shop.example/assets/index-Aa0_Zz9x.js:1:2", "    at Array.map (<anonymous>)"}},
	{name: "firefox", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("%s@%s/assets/%s:%d:%d", fn, n.host(), n.built("index"), n.line(), n.line())
	}, after: []string{"place/<@https://shop.example/assets/index-Aa0_Zz9x.js:1:2"}},
	{name: "python", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("  File \"%s/shop/%s.py\", line %d, in %s", n.path(), fn, n.line(), fn)
	}, after: []string{"    return total", "    ^^^^^^^^", "  [Previous line repeated 996 more times]"}, last: true},
	{name: "go", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("github.com/acme/shop/v%d.(*Shop).%s.func%d(%s, 0x%x)\n\t%s/shop/%s.go:%d +0x%x", 2+n.IntN(5), title(fn), 1+n.IntN(4), n.address(), n.IntN(99), n.path(), fn, n.line(), n.IntN(999))
	}, after: []string{"created by main.start in goroutine 7\n\t/app/main.go:3 +0x1"}},
	{name: "ruby", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("%s/app/%s.rb:%d:in `%s%s'", n.path(), fn, n.line(), []string{"", "block in ", "block (2 levels) in "}[n.IntN(3)], fn)
	}, after: []string{"/usr/lib/ruby/gems/3.2.0/gems/rack-3.0/lib/rack.rb:3:in `call'"}},
	{name: "php", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf(`#%d %s/app/%s.php(%d): App\%s->%s('%x')`, i, n.path(), title(fn), n.line(), title(fn), fn, n.Uint32())
	}, after: []string{`#90 [internal function]: call_user_func(Array)`, `#99 {main}`}},
	{name: "dotnet", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("   %s Acme.Shop.<%s>d__%d.MoveNext()%s", []string{"at", "bei", "en", "à", "в", "在", "위치:"}[n.IntN(7)], title(fn), n.IntN(30), []string{"", ` in C:\b\Shop.cs:line ` + fmt.Sprint(n.line()), ` dans /b/Shop.cs:ligne ` + fmt.Sprint(n.line())}[n.IntN(3)])
	}, after: []string{"--- End of stack trace from previous location ---", "   at System.Runtime.CompilerServices.TaskAwaiter.ThrowForNonSuccess(Task task)"}},
	{name: "rust", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf("  %2d: shop::%s::{closure#%d}::h%016x\n             at %s/src/%s.rs:%d:%d", i, fn, n.IntN(9), n.Uint64(), n.path(), fn, n.line(), n.line())
	}, after: []string{"  88: std::rt::lang_start::h3e3f989126541ea9\n             at /rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/std/src/rt.rs:1:1"}},
	{name: "sanitizer", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf("    #%d %s in shop::%s(int) %s/src/%s.cpp:%d:%d", i, n.address(), fn, n.path(), fn, n.line(), n.line())
	}, after: []string{"    #90 0x7f1b2c in __libc_start_main (/lib/x86_64-linux-gnu/libc.so.6+0x20830)"}},
	{name: "glibc", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("%s/shop(%s+0x%x)[%s]", n.path(), fn, n.IntN(999), n.address())
	}, after: []string{"/lib/x86_64-linux-gnu/libc.so.6(__libc_start_main+0xf0)[0x7f0001]"}},
	{name: "swift", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf("%d   Shop     %s closure #%d in Cart.%s() + %d", i, n.address(), 1+n.IntN(5), fn, n.IntN(500))
	}, after: []string{"90  UIKitCore  0x00000001b0000000 -[UIApplication sendAction:] + 96"}},
	{name: "dart", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf("#%d      Shop.%s%s (package:shop/%s.dart:%d:%d)", i, fn, []string{"", ".<anonymous closure>"}[n.IntN(2)], fn, n.line(), n.line())
	}, after: []string{"<asynchronous suspension>", "#90      State.setState (package:flutter/src/widgets/framework.dart:1:1)"}},
	{name: "elixir", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("    (shop %s) lib/%s.ex:%d: %sShop.%s/2", n.version(), fn, n.line(), []string{"", "anonymous fn/1 in "}[n.IntN(2)], fn)
	}, after: []string{"    (stdlib 3.17) gen_server.erl:695: :gen_server.try_dispatch/4"}},
	{name: "erlang", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf(` {shop,%s,%s,[{file,"%s/src/shop.erl"},{line,%d}]},`, fn, []string{"2", "[7,{a,1}]"}[n.IntN(2)], n.path(), n.line())
	}},
	{name: "mono", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("  at Acme.Shop.%s (System.Int32 id) [0x%05x] in %s", title(fn), n.IntN(999), []string{fmt.Sprintf("<%016x>:0 ", n.Uint64()), n.path() + "/Shop.cs:" + fmt.Sprint(n.line()) + " "}[n.IntN(2)])
	}, after: []string{"  at System.Threading.Tasks.Task.Execute () [0x00010] in <0a1b2c3d>:0 "}},
	{name: "unity", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("Acme.Shop%s%s (System.Int32 id) (at Assets/%s.cs:%d)", []string{":", "."}[n.IntN(2)], title(fn), fn, n.line())
	}},
	{name: "windows", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf(`shop!Cart::%s+0x%x%s`, fn, n.IntN(999), []string{"", fmt.Sprintf(` [C:\src\%s.cpp @ %d]`, fn, n.line())}[n.IntN(2)])
	}, after: []string{"KERNEL32!BaseThreadInitThunk+0x14"}},
	{name: "boost", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf(" %d# shop::%s(int) at %s/src/%s.cpp:%d", i, fn, n.path(), fn, n.line())
	}},
	{name: "erlang's shell", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf("    in %s shop:%s/2 (%s/src/shop.erl, line %d)", []string{"function ", "call from"}[min(i, 1)], fn, n.path(), n.line())
	}, after: []string{"    in call from proc_lib:init_p_do_apply/3 (proc_lib.erl, line 240)"}},
	{name: "hermes", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("    at %s (%s%s/index.android.bundle:1:%d)", fn, []string{"", "address at "}[n.IntN(2)], n.path(), n.line())
	}, after: []string{"    at apply (native)"}},
	{name: "powershell", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf(`at %s, %s/%s.ps1: line %d`, fn, n.path(), fn, n.line())
	}, after: []string{"at <ScriptBlock>, <No file>: line 1"}},
	{name: "perl", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("\tShop::%s(HASH(%s), %d) called at %s/Shop.pm line %d", fn, n.address(), n.IntN(99), n.path(), n.line())
	}, after: []string{"\teval {...} called at /app/a.pl line 3"}},
	{name: "lua", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("\t%s/%s.lua:%d: in %s '%s'", n.path(), fn, n.line(), []string{"function", "upvalue", "local", "method"}[n.IntN(4)], fn)
	}, after: []string{"\t[C]: in ?"}},
	{name: "julia", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf(" [%d] %s(x::Int%d)\n   @ Shop %s/%s.jl:%d", i+1, fn, 8<<n.IntN(4), n.path(), fn, n.line())
	}, after: []string{" [90] top-level scope\n   @ REPL[1]:1"}},
	{name: "haskell", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("  %s, called at src/%s.hs:%d:%d in shop-%s-%x:%s", fn, title(fn), n.line(), n.line(), n.version(), n.Uint32(), title(fn))
	}},
	{name: "r", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf("%d: %s(cart) at shop.R#%d", 9-i, fn, n.line())
	}},
	{name: "safari", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("%s@%s/assets/%s:%d:%d", fn, n.host(), n.built("index"), n.line(), n.line())
	}, after: []string{"forEach@[native code]", "@https://shop.example/assets/index-Aa0_Zz9x.js:1:2", "global code@https://shop.example/assets/index-Aa0_Zz9x.js:1:2"}},
	{name: "kotlin coroutines", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("\tat com.acme.%s$%s$%d.invokeSuspend(%s.kt:%d)", title(fn), fn, 1+n.IntN(5), title(fn), n.line())
	}, after: []string{"\tat kotlin.coroutines.jvm.internal.BaseContinuationImpl.resumeWith(ContinuationImpl.kt:33)", "\tat _COROUTINE._BOUNDARY._(CoroutineDebugging.kt:46)"}},
	{name: "clojure", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("\tat shop.cart$%s$fn__%d.invoke(cart.clj:%d)", fn, n.line(), n.line())
	}, after: []string{"\tat clojure.lang.AFn.run(AFn.java:22)", "\tat clojure.core$map$fn__5862.invoke(core.clj:2742)"}},
	{name: "exception group", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("    |   File \"%s/shop/%s.py\", line %d, in %s", n.path(), fn, n.line(), fn)
	}, after: []string{"    |     return total", "    |     ^^^^^^^^"}, last: true},
	{name: "objective-c", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf("%-3d Shop     %s -[Cart %s:] + %d", i, n.address(), fn, n.IntN(500))
	}, after: []string{"90  UIKitCore  0x00000001b0000000 -[UIApplication sendAction:] + 96"}},
	{name: "gdb", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf("#%d  %s in %s (n=%d, cart=%s) at %s.c:%d", i, n.address(), fn, n.IntN(99), n.address(), fn, n.line())
	}, after: []string{"#90 0x00007ffff7829d90 in __libc_start_main () from /lib/x86_64-linux-gnu/libc.so.6"}},
	{name: "kotlin native", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf("    at %d   shop.kexe   %s   kfun:shop.Cart#%s(){}kotlin.Int + %d (%s/Cart.kt:%d:9)", i, n.address(), fn, n.IntN(999), n.path(), n.line())
	}, after: []string{"    at 90   shop.kexe   0x1043d5b4a   kfun:kotlin.Throwable#<init>(kotlin.String?){} + 90"}},
	{name: "glog", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("    @     %s  shop::Cart::%s()", n.address(), fn)
	}, after: []string{"    @     0x7f1b2c3d4f5f  __libc_start_main", "    @     0x7f1b2c000000  (unknown)"}},
	{name: "systemd", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf("#%d  0x%016x cart_%s (shop + 0x%x)", i, n.Uint64()>>16, fn, n.IntN(9999))
	}, after: []string{"#90  0x00007f1b2c3d4e7f n/a (libc.so.6 + 0x29d90)"}},
	{name: "breakpad", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf(" %d  shop!shop::Cart::%s(int) [cart.cpp : %d + 0x%x]", i, fn, n.line(), n.IntN(99))
	}, after: []string{"    rax = 0x0000000000000000   rdx = 0x00007f1b2c3d4e5f", "    Found by: call frame info"}},
	{name: "unreal", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf(`[Callstack] %s Shop.exe!ACart::%s() [%s/Cart.cpp:%d]`, n.address(), title(fn), n.path(), n.line())
	}},
	{name: "backward", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf(`#%d    Source "%s/cart.cpp", line %d, in shop::Cart::%s() [%s]`, i, n.path(), n.line(), fn, n.address())
	}, after: []string{`#90   Object "/lib/libc.so.6", at 0x7f1b2c3d4e5f, in __libc_start_main`}, last: true},
	{name: "webassembly", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("    at shop.wasm.Cart::%s(int) (%s/shop.wasm:wasm-function[%d]:0x%x)", fn, n.host(), n.IntN(999), n.IntN(9999))
	}},
	{name: "ipython", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("File %s/shop/%s.py:%d, in %s(id)\n---> 12     return total", n.path(), fn, n.line(), fn)
	}, last: true},
	{name: "rich", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf("│ %s/shop/%s.py:%d in %s%s│", n.path(), fn, n.line(), fn, strings.Repeat(" ", n.IntN(30)))
	}, after: []string{"│ ❱ 12 │   return total                    │"}, last: true},
	{name: "symfony console", call: func(n noise, fn string, _ int) string {
		return fmt.Sprintf(` App\Cart->%s() at %s/src/Page.php:%d`, fn, n.path(), n.line())
	}},
	{name: "xdebug", call: func(n noise, fn string, i int) string {
		return fmt.Sprintf(`PHP   %d. App\Cart->%s($id = %d) %s/src/Page.php:%d`, 9-i, fn, n.IntN(99), n.path(), n.line())
	}, last: true},
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// trace prints calls, the innermost first,
// each up to twice as recursion does.
func (r runtime) trace(n noise, calls []string) (lines []string) {
	for i, fn := range calls {
		for range 1 + n.IntN(2)*n.IntN(2) {
			lines = append(lines, r.call(n, fn, i))
		}
		if i > 0 && len(r.after) > 0 && n.IntN(2) == 0 {
			lines = append(lines, r.after[n.IntN(len(r.after))])
		}
	}
	if r.last {
		slices.Reverse(lines)
	}
	return n.collected(strings.Split(strings.Join(lines, "\n"), "\n"))
}

// collected puts a collector's prefix before all lines, one time of four.
func (n noise) collected(lines []string) []string {
	if n.IntN(4) > 0 {
		return lines
	}
	before := []string{"web_1  | ", "2024-01-01T10:00:0%dZ stderr F ", "Jan  1 10:00:0%d host-7 app[71]: ", "shop-%d  | 2024-01-01T10:00:00.1%d%dZ "}[n.IntN(4)]
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(before, "%d", fmt.Sprint(i%10)) + line
	}
	return lines
}

// In every language, nothing that changes between two occurrences
// changes the group, and another function or type does.
func TestGeneratedTraces(t *testing.T) {
	words := strings.Fields("charge refund checkout discount total invoice render parse login tax ship search index import export quote cancel merge")
	for _, r := range runtimes {
		t.Run(r.name, func(t *testing.T) {
			n := noise{rand.New(rand.NewPCG(7, 11))}
			var g Grouper
			var e Error
			decide := func(typ string, calls []string) Hash {
				e = Error{Type: typ, Message: fmt.Sprintf("cannot pay order %d of %s", n.line(), n.address()), StackTrace: r.trace(n, calls)}
				return g.Fingerprint(e).Deciding().Hash
			}
			joined := 0
			for range 50 {
				n.Shuffle(len(words), func(i, k int) { words[i], words[k] = words[k], words[i] })
				calls := words[:3+n.IntN(6)]
				base := decide("PaymentFailed", calls)
				for range 10 {
					if decide("PaymentFailed", calls) != base {
						t.Fatalf("%v moves: %+v\n%s", calls, g.Fingerprint(e).Explain(), strings.Join(e.StackTrace, "\n"))
					}
				}
				if decide("PaymentFailed", append([]string{words[len(words)-1]}, calls[1:]...)) == base || decide("PaymentRefused", calls) == base {
					joined++
				}
			}
			if joined > 0 {
				t.Errorf("%d of 50 joined another function or type", joined)
			}
		})
	}
}

// A trace of half the longest size allocates nothing, in any language, nor
// does any variant, however its text is encoded.
func TestNothingIsAllocated(t *testing.T) {
	calls := strings.Fields("charge refund checkout discount total invoice render parse login tax ship")
	for _, r := range runtimes {
		n := noise{rand.New(rand.NewPCG(7, 11))}
		e := Error{Type: "PaymentFailed", Message: "cannot pay order 4711", StackTrace: r.trace(n, calls)}
		checkAllocations(t, r.name, e)
	}
	for language, errors := range located() {
		for _, k := range errors {
			checkAllocations(t, fmt.Sprintf("%s in %s", k.name, language), k.base)
			for how, e := range encoded(k.base) {
				checkAllocations(t, fmt.Sprintf("%s in %s, %s", k.name, language, how), e)
			}
		}
	}
}

func checkAllocations(t *testing.T, what string, e Error) {
	t.Helper()
	var g Grouper
	if n := testing.AllocsPerRun(10, func() { g.Fingerprint(e).Deciding() }); n > 0 {
		t.Errorf("%s costs %v allocations", what, n)
	}
}

// encoded are an error's traces as loggers and terminals encode them.
func encoded(e Error) map[string]Error {
	whole, all := strings.Join(e.StackTrace, "\n"), map[string]Error{}
	for how, pieces := range map[string][]string{
		"escaped":      {strings.NewReplacer("\n", `\n`, "\t", `\t`, `"`, `\"`, `\`, `\\`).Replace(whole)},
		"escaped tabs": strings.Split(strings.ReplaceAll(whole, "\t", `\t`), "\n"),
		"Docker's log": eachLine(strings.NewReplacer("\t", `\t`, `"`, `\"`, `\`, `\\`).Replace(whole), `{"log":"`, `\n","stream":"stderr"}`),
		"colours":      eachLine(whole, "\x1b[1;31m", "\x1b[0m"),
	} {
		e.StackTrace = pieces
		all[how] = e
	}
	return all
}

// What is kept of an error stays as it was, whatever is read after it.
func TestNothingKeptChanges(t *testing.T) {
	var g Grouper
	next := Error{StackTrace: []string{strings.Repeat(`    at next (https://next.example/next.js:1:2)\n`, 100)}}
	check := func(what string, kept any) {
		said := fmt.Sprintf("%+v", kept)
		g.Fingerprint(next)
		if now := fmt.Sprintf("%+v", kept); now != said {
			t.Errorf("%s was %s, and is %s", what, said, now)
		}
	}
	for language, errors := range located() {
		for _, k := range errors {
			for how, e := range encoded(k.base) {
				what := fmt.Sprintf("%s in %s, %s", k.name, language, how)
				g.Fingerprint(next) // so that there is memory to be overwritten
				f := g.Fingerprint(e)
				check(what, []any{f.Explain(), f.Describe()})
				g.Fingerprint(next)
				check(what, g.Places(e))
			}
		}
	}
}
