package grouping

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping/trace"
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
	one := thrown("E", "boom", "\tat a.B.c(B.java:1)\n\tat a.D.e(D.java:1)\n\tat a.F.g(F.java:1)\n\tat a.H.i(H.java:1)\n\tat a.X.y(X.java:1)")
	two := thrown("E", "boom", "\tat a.B.c(B.java:2)\n\tat a.D.e(D.java:2)\n\tat a.F.g(F.java:2)\n\tat a.H.i(H.java:2)\n\tat a.Z.y(Z.java:1)")
	library := thrown("E", "boom", "\tat a.B.c(B.java:1)\n\tat a.D.e(D.java:1)\n\tat a.F.g(F.java:1)\n\tat a.H.i(H.java:1)\n\tat a.X.y(X.java:1)\n\tat org.junit.X.y(X.java:1)")
	f := g.Fingerprint(one)
	trace, site := f.Strictest, f.Deciding()
	if trace.Scope != ScopeTrace || site.Scope != ScopeSite || len(f.Joining()) != 2 || site.Version != Version {
		t.Fatalf("fingerprint %+v", f)
	}
	f = g.Fingerprint(two)
	if f.Strictest == trace || f.Deciding() != site {
		t.Errorf("another outer caller must move %s and not %s", ScopeTrace, ScopeSite)
	}
	if g.Fingerprint(library).Strictest != trace {
		t.Errorf("another caller in a library must not move %s", ScopeTrace)
	}
	if f := g.Fingerprint(Error{Type: "E"}); f.Deciding().Scope != ScopeMessage || len(f.Joining()) != 1 {
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
		if len(f.Joining()) == 1 {
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
		"(a 1) b.ex:1: ", "+0x1", "a<", "#0 a (package:", "a)\n at a.c:1", "Wrapped by: a: b\n", "+-+---- 1 ----\n", "runtime stack:\n", "' panicked at 'a', ", "(a) at ",
	} {
		long := strings.Repeat(seed, size/len(seed))
		for _, e := range []Error{{StackTrace: []string{long}}, {Type: long}, {Message: long}, {Message: long, StackTrace: []string{"at a.B.c(B.java:1)"}},
			{StackTrace: []string{"at a" + long + strings.Repeat("1", size)}},
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

// Errors whose types differ by an id alone are the same, with and without a trace.
func TestTypesWithIDsAreOneGroup(t *testing.T) {
	var g Grouper
	for _, stack := range [][]string{nil, {"at com.acme.A.b(A.java:1)"}, {"at com.acme.A.b(A.java:1)", "Caused by: x.Cause_9f86d081: y", "at com.acme.C.d(C.java:1)"}} {
		one := g.Fingerprint(Error{Type: "Error_8f3a9c", Message: "cannot pay", StackTrace: stack}).Deciding()
		two := g.Fingerprint(Error{Type: "Error_1b22c4", Message: "cannot pay", StackTrace: stack})
		if two.Deciding() != one {
			t.Errorf("%+v and %+v", one, two)
		}
		if why := two.Explain(); len(stack) < 3 && why.Parts[0] != (Part{"type", "Error_*"}) {
			t.Errorf("why %+v", why)
		}
	}
}

// identifiedVariants are errors with ids in their types.
var identifiedVariants = []variants{
	{name: "id without a trace", base: Error{Type: "Error_8f3a9c", Message: "cannot pay"}},
	{name: "id", base: thrown("Timeout<1234>", "cannot pay", "\tat com.acme.A.b(A.java:1)")},
	{name: "id of a cause", base: thrown("com.acme.Failed", "cannot pay", "\tat com.acme.A.b(A.java:1)\nCaused by: x.Job12345Failed: y\n\tat com.acme.C.d(C.java:1)")},
}

const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	upperCase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	figures   = "0123456789"
)

// Of 400 builds of a script at least 99 % are one group,
// whatever alphabet and length their hashes have.
func TestBuildHashes(t *testing.T) {
	for name, hash := range map[string]struct {
		alphabet string
		length   int
	}{
		"vite": {lowerCase + upperCase + figures + "-_", 8}, "rollup base36": {lowerCase + figures, 8}, "esbuild": {upperCase + "234567", 8},
		"webpack": {"abcdef" + figures, 20}, "parcel": {"abcdef" + figures, 8}, "base62": {lowerCase + upperCase + figures, 8},
		"6 of base36": {lowerCase + figures, 6}, "6 of base62": {lowerCase + upperCase + figures, 6}, "6 of hex": {"abcdef" + figures, 6},
	} {
		for _, pattern := range []string{"%s.js", "index-%s.js", "index.%s.js", "index_%s.js", "cart-page.%s.js"} {
			n, groups := rand.New(rand.NewPCG(7, 11)), map[Hash]int{}
			for range 400 {
				var g Grouper
				file := fmt.Sprintf(pattern, draw(n, hash.alphabet, hash.length))
				groups[g.Fingerprint(thrown("Error", "no such cart", "    at renderCart (https://shop.example/_nuxt/"+file+":1:2)\n    at openCart (https://shop.example/app.js:1:2)")).Deciding().Hash]++
			}
			if len(groups) > 5 {
				t.Errorf("%s makes %d groups of %s", name, len(groups), pattern)
			}
		}
	}
}

func draw(n *rand.Rand, alphabet string, length int) string {
	s := make([]byte, length)
	for i := range s {
		s[i] = alphabet[n.IntN(len(alphabet))]
	}
	return string(s)
}

// variants is an error and variants of it. Those in same differ from
// base only in what changes between two occurrences of one fault: they
// must join base. Those in other are other faults: they must not.
type variants struct {
	name  string
	base  Error
	same  map[string]Error
	other map[string]Error
}

var allVariants = [][]variants{javaVariants, javascriptVariants, pythonVariants, goVariants, rubyVariants, phpVariants, dotnetVariants, otherVariants, identifiedVariants, generatedVariants, chainVariants, causeVariants, depthVariants, nativeVariants, dartVariants, beamVariants, scriptVariants, fieldVariants, readmeVariants}

func thrown(typ, message, stack string) Error {
	return Error{Type: typ, Message: message, StackTrace: strings.Split(strings.Trim(stack, "\n"), "\n")}
}

// Errors of one fault join, errors of
// different faults do not, in every language.
func TestVariants(t *testing.T) {
	for _, k := range allVariants {
		for _, k := range k {
			t.Run(k.name, k.check)
		}
	}
}

func (k variants) check(t *testing.T) {
	var g Grouper
	base := g.Fingerprint(k.base).Deciding()
	why := g.Fingerprint(k.base).Explain()
	for what, e := range k.same {
		if got := g.Fingerprint(e).Deciding(); got != base {
			t.Errorf("%s must not move it\nbase %+v\n got %+v", what, why, g.Fingerprint(e).Explain())
		}
	}
	for what, e := range k.other {
		if g.Fingerprint(e).Deciding() == base {
			t.Errorf("%s must move it\nboth %+v", what, why)
		}
	}
}

// Senders cut traces into strings in any way: lines, all at
// once, with and without indentation and carriage returns.
func TestPieces(t *testing.T) {
	for _, ks := range [][]variants{javaVariants, javascriptVariants, pythonVariants, goVariants, rubyVariants, phpVariants, dotnetVariants} {
		for _, k := range ks {
			var g Grouper
			want := g.Fingerprint(k.base).Deciding()
			whole := strings.Join(k.base.StackTrace, "\n")
			for what, pieces := range map[string][]string{
				"one string":             {whole},
				"crlf":                   {strings.ReplaceAll(whole, "\n", "\r\n")},
				"line ends":              strings.SplitAfter(whole, "\n"),
				"blank lines":            strings.SplitAfter(strings.ReplaceAll(whole, "\n", "\n\n"), "\n"),
				"two big strings":        {whole[:strings.IndexByte(whole, '\n')], whole[strings.IndexByte(whole, '\n')+1:]},
				"escaped once too often": {strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(whole)},
				"escaped CRLF":           {strings.NewReplacer("\n", `\r\n`, "\t", `\t`).Replace(whole)},
				"escaped tabs":           strings.Split(strings.ReplaceAll(whole, "\t", `\t`), "\n"),
				"colours":                eachLine(whole, "\x1b[1;31m", "\x1b[0m"),
				"a logger":               eachLine(whole, "2024-01-01 10:00:00,123 ERROR [main] c.a.Shop - ", ""),
				"a collector":            eachLine(whole, "2024-01-01T10:00:00.123456789Z stderr F ", ""),
				"a container":            eachLine(whole, "web_1  | ", ""),
				"syslog":                 eachLine(whole, "Jan  1 10:00:00 host app[7]: ", ""),
				"a log of Docker":        eachLine(strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(whole, `\`, `\\`), `"`, `\"`), "\t", `\t`), `{"log":"`, `\n","stream":"stderr","time":"2024-01-01T10:00:00Z"}`),
			} {
				e := Error{Type: k.base.Type, Message: k.base.Message, StackTrace: pieces}
				if got := g.Fingerprint(e).Deciding(); got != want {
					t.Errorf("%s: %s moves it: %+v", k.name, what, g.Fingerprint(e).Explain())
				}
			}
		}
	}
}

// eachLine puts text around each line.
func eachLine(s, before, behind string) (lines []string) {
	for line := range strings.SplitSeq(s, "\n") {
		lines = append(lines, before+line+behind)
	}
	return lines
}

// Of a stack of a thousand calls those in the middle do
// not count, and shown ones are marked as own or foreign.
func TestLongStacks(t *testing.T) {
	stack := func(middle string) (e Error) {
		e.Type = "TypeError"
		for i := range 1000 {
			name := "call" + strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprint(i)) // no number, which would not count
			if i > 500 && i < 900 {
				name = middle + name
			}
			e.StackTrace = append(e.StackTrace, fmt.Sprintf("at shop.%s (/srv/shop/src/%s.js:%d:7)", name, name, i+1))
		}
		return e
	}
	var g Grouper
	one := g.Fingerprint(stack("a")).All()
	other := g.Fingerprint(stack("b"))
	if !slices.Equal(one, other.All()) {
		t.Error("calls in the middle count")
	}
	shown := other.Describe().Exceptions[0]
	if foreign := slices.IndexFunc(shown.Frames, func(f trace.Frame) bool { return !f.InApp }); len(shown.Frames) != trace.MaxShown || foreign >= 0 {
		t.Errorf("of %d frames that are shown the one at %d counts as foreign", len(shown.Frames), foreign)
	}
}

// eleven is an error with as many frames as half of all errors have.
func eleven() Error { return deep(11) }

// deep is an error with so many frames.
func deep(frames int) Error {
	e := Error{Type: "com.acme.PaymentFailed", Message: "cannot pay order 4711", StackTrace: []string{"com.acme.PaymentFailed: cannot pay order 4711"}}
	for i := range frames {
		e.StackTrace = append(e.StackTrace, fmt.Sprintf("\tat com.acme.shop.pay.Gateway%s.charge(Gateway.java:%d)", suffix(i), 100+i))
	}
	return e
}

// suffix names a class by letters: digits would be a counter's.
func suffix(i int) string { return string([]rune{rune('A' + i/26), rune('a' + i%26)}) }

// How long single errors take, of which half have 11 frames, a
// tenth have 35 and a hundredth 100.
func BenchmarkPercentiles(b *testing.B) {
	var g Grouper
	var all []Error
	for i := range 100 {
		switch {
		case i == 0:
			all = append(all, deep(100))
		case i < 10:
			all = append(all, deep(35))
		default:
			all = append(all, eleven())
		}
	}
	took := make([]time.Duration, 0, 1<<20)
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		g.Fingerprint(all[i%len(all)])
		if len(took) < cap(took) {
			took = append(took, time.Since(begun))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// How much longer the regular expression below takes than
// Fingerprint, by turns, so that a busy machine slows both.
func BenchmarkAgainstRegexp(b *testing.B) {
	e := eleven()
	var g Grouper
	var ours, theirs time.Duration
	for b.Loop() {
		begun := time.Now()
		g.Fingerprint(e)
		fingerprinted := time.Now()
		matchFrames(e)
		ours, theirs = ours+fingerprinted.Sub(begun), theirs+time.Since(fingerprinted)
	}
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "times")
}

var frameExpression = regexp.MustCompile(`^\s*at (?:[\w.@]+/)?([\w.$]+)\.([\w$<>]+)\(([^:)]+)(?::(\d+))?\)`)

func matchFrames(e Error) {
	for _, line := range e.StackTrace {
		frameExpression.FindStringSubmatch(line)
	}
}
