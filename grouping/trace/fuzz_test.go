package trace

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// Whatever is sent: it is read without a panic, in bounded memory, alike whatever was read before, and what was kept of
// it is compared as it was.
func FuzzRead(f *testing.F) {
	traces, err := os.ReadFile("../testdata/traces.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, one := range strings.Split(string(traces), "\n=== ") {
		_, stack, _ := strings.Cut(one, "\n")
		f.Add("", "", stack)
		f.Add("", stack, "")
	}
	f.Add("", "", "at a(b) at c"+strings.Repeat("(a) at ", 2000)+strings.Repeat("1", 1<<14))
	f.Add("", "", strings.Repeat("   1: "+strings.Repeat("<", maxLine)+"::b\n", 20))
	f.Fuzz(func(t *testing.T, typ, message, stack string) {
		var used, fresh Trace
		used.Read(stack, typ, []string{message}, nil, nil)
		used.Read(typ, message, []string{stack}, nil, nil)
		fresh.Read(typ, message, []string{stack}, nil, nil)
		read := comparedOf(&fresh)
		if other := comparedOf(&used); !slices.Equal(read, other) {
			t.Fatalf("what came before counts: %q, then %q", read, other)
		}
		checkBounds(t, &fresh)
		checkAgain(t, &fresh)
		var loaded Trace
		loaded.Load(fresh.Language(), kept(&fresh), nil)
		if one, other := fresh.Root(), loaded.Root(); one.Type != other.Type || one.Message != other.Message {
			t.Fatalf("the root is %+v, and %+v once it was kept", one, other)
		}
		if other := comparedOf(&loaded); fresh.Language() == JavaScript && !slices.Equal(read, other) {
			t.Fatalf("read as %q, kept as %q", read, other)
		}
		const most = 20 // where more was decoded than what is kept
		if n := testing.AllocsPerRun(1, func() { used.Read(typ, message, []string{stack}, nil, nil) }); n > most {
			t.Fatalf("%v allocations", n)
		}
	})
}

// comparedOf is what counts of an error.
func comparedOf(t *Trace) (all []string) {
	all = append(all, string(t.Language()))
	for _, i := range t.Site() {
		all = append(all, fmt.Sprint(string(t.Identity(i)), t.Frames()[i].InApp))
	}
	for _, s := range t.Spans() {
		all = append(all, string(t.Language().AppendType(nil, s.Type)), s.Message)
	}
	return all
}

// kept are the exceptions as they are stored.
func kept(t *Trace) (all []Exception) {
	for _, s := range t.Spans() {
		all = append(all, Exception{Type: s.Type, Message: s.Message, Frames: slices.Clone(t.Frames()[s.First:s.End])})
	}
	return all
}

// checkBounds checks that what was read has a size that does not depend on what was sent.
func checkBounds(t *testing.T, read *Trace) {
	const most = maxLines + maxLines/2 + 1 // with the place of a syntax error
	if len(read.Frames()) > most || len(read.Spans()) > maxSpans || len(read.Site()) > maxSpans*(traceHead+traceTail) {
		t.Fatalf("%d frames, %d exceptions, %d calls that count", len(read.Frames()), len(read.Spans()), len(read.Site()))
	}
	for i := range read.Frames() {
		f := &read.Frames()[i]
		if n := len(f.Module) + len(f.Function) + len(f.File); n > 2*maxLine || len(read.Identity(i)) > 2*maxLine+8 {
			t.Fatalf("frame %d has %d bytes, its identity %d", i, n, len(read.Identity(i)))
		}
	}
	end := 0
	for _, s := range read.Spans() {
		if s.First > s.End || s.End > len(read.Frames()) {
			t.Fatalf("frames %d to %d of %d", s.First, s.End, len(read.Frames()))
		}
		end += s.End - s.First
	}
	if end > len(read.Frames()) {
		t.Fatalf("%d frames in exceptions, of %d", end, len(read.Frames()))
	}
}

// checkAgain checks that what was taken out of messages and types leaves nothing to take out.
func checkAgain(t *testing.T, read *Trace) {
	for _, s := range read.Spans() {
		typ := string(read.Language().AppendType(nil, s.Type))
		if again := string(read.Language().AppendType(nil, typ)); again != typ || len(typ) > maxLine {
			t.Fatalf("type %q is %q, then %q", s.Type, typ, again)
		}
		var m Message
		m.Read(s.Message, MaxAlone)
		if words := len(m.Words()); words > MaxAlone || len(m.AppendAll(nil)) > len(s.Message)+2*words {
			t.Fatalf("message %q is %q", s.Message, m.AppendAll(nil))
		}
	}
}
