package grouping

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/hashes-v*.txt; only before the version is in use")

// Hashes are stored: those of a version never change.
// A change that fails this test raises Version.
func TestGoldenHashes(t *testing.T) {
	path := fmt.Sprintf("testdata/hashes-v%d.txt", Version)
	var got strings.Builder
	var g Grouper
	for _, ks := range allVariants {
		for _, k := range ks {
			for _, p := range g.Fingerprint(k.base).All() {
				fmt.Fprintf(&got, "%s %s %s\n", p.Hash, p.Scope, k.name)
			}
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("hashes of version %d have moved:\n%s", Version, got.String())
	}
}

// The strictest level distinguishes more than
// the deciding one, which follows from it.
func TestLevels(t *testing.T) {
	var g Grouper
	one := thrown("E", "boom", "\tat a.B.c(B.java:1)\n\tat a.D.e(D.java:1)\n\tat a.X.y(X.java:1)")
	two := thrown("E", "boom", "\tat a.B.c(B.java:2)\n\tat a.D.e(D.java:2)\n\tat a.Z.y(Z.java:1)")
	library := thrown("E", "boom", "\tat a.B.c(B.java:1)\n\tat a.D.e(D.java:1)\n\tat a.X.y(X.java:1)\n\tat org.junit.X.y(X.java:1)")
	f := g.Fingerprint(one)
	trace, site := f.Hashes[0], f.Deciding()
	if trace.Scope != ScopeTrace || site.Scope != ScopeSite || f.Joins != 2 || site.Version != Version {
		t.Fatalf("fingerprint %+v", f)
	}
	f = g.Fingerprint(two)
	if f.Hashes[0] == trace || f.Deciding() != site {
		t.Errorf("another outer caller must move %s and not %s", ScopeTrace, ScopeSite)
	}
	if g.Fingerprint(library).Hashes[0] != trace {
		t.Errorf("another caller in a library must not move %s", ScopeTrace)
	}
	if f := g.Fingerprint(Error{Type: "E"}); f.Deciding().Scope != ScopeMessage || f.Joins != 1 {
		t.Errorf("without a trace: %+v", f)
	}
}

// Each level contains the one before: errors that are equal at
// one are so at all looser ones. All are compared with all.
func TestLevelsContainEachOther(t *testing.T) {
	type levels [len(Levels)]Hash
	var all []levels
	var g Grouper
	for _, e := range everyError() {
		f := g.Fingerprint(e)
		if f.Joins == 1 {
			continue
		}
		var l levels
		hashes := f.All()
		for i := range l {
			l[i] = hashes[i].Hash
		}
		all = append(all, l)
	}
	for i, a := range all {
		for _, b := range all[:i] {
			for level := 1; level < len(a); level++ {
				if a[level-1] == b[level-1] && a[level] != b[level] {
					t.Errorf("two errors are one at %s and two at %s", Levels[level-1].Scope, Levels[level].Scope)
				}
			}
		}
	}
}

// everyError returns the errors of all
// variants, and each without its last lines.
func everyError() (errors []Error) {
	for _, ks := range allVariants {
		for _, k := range ks {
			variants := append([]Error{k.base}, slices.Concat(slices.Collect(maps.Values(k.same)), slices.Collect(maps.Values(k.other)))...)
			for _, e := range variants {
				for cut := range min(4, len(e.StackTrace)) {
					shorter := e
					shorter.StackTrace = e.StackTrace[:len(e.StackTrace)-cut]
					errors = append(errors, shorter)
				}
			}
		}
	}
	return errors
}

// A dump of all threads is no trace of an error.
func TestThreadDump(t *testing.T) {
	var g Grouper
	f := g.Fingerprint(thrown("Deadlock", "found one", `
"main" prio=5 tid=0x1 nid=0x2 waiting for monitor entry
   java.lang.Thread.State: BLOCKED
	at a.B.c(B.java:1)`))
	if f.Deciding().Scope != ScopeMessage {
		t.Errorf("grouped by %s", f.Deciding().Scope)
	}
}

// The cost of an error is linear in its size:
// half a megabyte of anything takes a moment.
func TestLinear(t *testing.T) {
	const size = 512 << 10
	var g Grouper
	for _, seed := range []string{
		"(", ")", "at ", "at a(", ") at ", "a.a(", ":1", "1", "\"", "'", "`", "<", "[", "File \"", "@", "/", "\\", "$", "0x", "a.", "a=",
		"#0 a(1): ", "::", "in ", "---> ", "\tat a.B.c(B.java:1)\n", "  File \"a\", line 1, in f\n", "Caused by: x: y\n", "\n", " ",
		"at a.B$1.c(B.java:1) at a.B$2.d(B.java:1)\n", "at Object.a.b.c.d (http://x/", "*", "func1.", "_app_", "Suppressed: a\n",
		" called at a line 1", ", called at a.hs:1:1 in a", ".lua:1: in function '", " [1] a()\n", "@ a b.jl:1", "#1 0x1 in a /a.c:1:1", " (/", "{a,b,[{file,\"", "]},{",
		"(a 1) b.ex:1: ", "+0x1", "a<", "#0 a (package:", "a)\n at a.c:1", "Wrapped by: a: b\n", "+-+---- 1 ----\n", "runtime stack:\n", "' panicked at 'a', ",
	} {
		long := strings.Repeat(seed, size/len(seed))
		for _, e := range []Error{{StackTrace: []string{long}}, {Type: long}, {Message: long}, {Message: long, StackTrace: []string{"at a.B.c(B.java:1)"}},
			{StackTrace: []string{"at " + long + "(B.java:1)"}}, {StackTrace: []string{"main." + long + "(0x1)", "\t/a.go:1"}}} {
			started := time.Now()
			g.Fingerprint(e).Describe()
			if took := time.Since(started); took > 3*time.Second {
				t.Errorf("%q took %v", seed, took)
			}
		}
	}
}

// Whatever is sent: no panic, the same answer twice, and a name for what is shown.
func FuzzFingerprint(f *testing.F) {
	for _, ks := range allVariants {
		for _, k := range ks {
			f.Add(k.base.Type, k.base.Message, strings.Join(k.base.StackTrace, "\n"))
		}
	}
	f.Add("", "", "thread 'a' panicked at ', b\n   1: a::b")
	f.Add("", "", "at "+strings.Repeat("a", 2048-len("at .b () [0x1] in "))+".b () [0x1] in /a.cs:1")
	f.Fuzz(func(t *testing.T, typ, message, stack string) {
		var g, h Grouper
		e := Error{Type: typ, Message: message, StackTrace: []string{stack}}
		first := g.Fingerprint(e).Deciding()
		g.Fingerprint(Error{Type: stack, StackTrace: []string{message, typ}})
		if again := g.Fingerprint(e); again.Deciding() != first || h.Fingerprint(e).Deciding() != first {
			t.Fatal("the hash depends on what came before")
		} else if d := again.Describe(); d.Title == "" || len(d.Title) > maxTitle || again.Explain().Rule.Text() == string(again.Explain().Rule) {
			t.Fatalf("description %+v", d)
		}
	})
}

// An error with a trace of 16 lines, from strings to hashes. Nothing is allocated.
func BenchmarkFingerprint(b *testing.B) {
	for _, k := range []variants{javaVariants[0], javascriptVariants[0], pythonVariants[0], goVariants[0], rubyVariants[0], phpVariants[0], dotnetVariants[0]} {
		b.Run(k.name, func(b *testing.B) {
			e := k.base
			for len(e.StackTrace) < 16 {
				e.StackTrace = append(e.StackTrace, k.base.StackTrace...)
			}
			e.StackTrace = e.StackTrace[:16]
			var g Grouper
			b.ReportAllocs()
			for b.Loop() {
				g.Fingerprint(e)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "errors/s")
		})
	}
}
