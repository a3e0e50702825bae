package grouping_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/sourcemap"
	"github.com/weirlog/weir/grouping/trace"
)

// built is an error of a script that a bundler built, and where its
// calls were written.
func built(t *testing.T, bundler string) grouping.Error {
	t.Helper()
	printed, err := os.ReadFile("sourcemap/testdata/" + bundler + ".trace")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("sourcemap/testdata/" + bundler + ".min.js.map")
	if err != nil {
		t.Fatal(err)
	}
	m, err := sourcemap.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	e := grouping.Error{StackTrace: []string{string(printed)}}
	e.Mapping = trace.Mapping{}
	var g grouping.Grouper
	for _, at := range g.Places(e) {
		found, err := sourcemap.Find(m.Parts[0].Data, m.Parts[0].Line, []sourcemap.Place{{Line: at.Line, Column: at.Column}})
		if err != nil {
			t.Fatal(err)
		}
		o := found[0]
		e.Mapping[at] = trace.Written{File: o.Source, Line: o.Line, Column: o.Column, Callee: o.Name}
	}
	return e
}

// An error is one whichever bundler built the script, and is shown
// as it was written, with what was printed beside it.
func TestMappedErrors(t *testing.T) {
	var g grouping.Grouper
	var groups []grouping.Hash
	for bundler, want := range map[string]string{
		"esbuild": `
			priceOf src/cart.ts:19:11 was c :1:174
			 src/cart.ts:14:44 was  :1:133
			Array.reduce <anonymous>:0:0
			sumOf src/cart.ts:14:16 was o :1:117
			r.totalPrice src/cart.ts:9:12 was r.totalPrice :1:78
			payFor src/checkout.ts:4:22 was i :1:261
			checkout src/checkout.ts:11:3 was a :1:337
			 src/checkout.ts:15:3 was  :1:346`,
		"terser": `
			priceOf src/cart.ts:19:11 was  :1:146
			 src/cart.ts:14:44 was  :1:210
			Array.reduce <anonymous>:0:0
			sumOf src/cart.ts:14:16 was  :1:99
			e.totalPrice src/cart.ts:9:12 was e.totalPrice :1:217
			payFor src/checkout.ts:4:22 was  :1:310
			checkout src/checkout.ts:11:3 was  :1:323
			 src/checkout.ts:15:3 was  :1:327`,
	} {
		f := g.Fingerprint(built(t, bundler))
		groups = append(groups, f.Deciding().Hash)
		d := f.Describe()
		got := "\n"
		for _, f := range d.Exceptions[0].Frames {
			got += fmt.Sprintf("%s %s:%d:%d", f.Function, f.File, f.Line, f.Column)
			if p := f.Printed; p != nil {
				got += fmt.Sprintf(" was %s :%d:%d", p.Function, p.Line, p.Column)
			}
			got += "\n"
		}
		if want = strings.ReplaceAll(want, "\t", "") + "\n"; got != want {
			t.Errorf("%s:%swant%s", bundler, got, want)
		}
		if d.Culprit != "priceOf (cart.ts)" {
			t.Errorf("%s: the culprit is %s", bundler, d.Culprit)
		}
	}
	if groups[0] != groups[1] {
		t.Error("two builds are two groups")
	}
}

// An error that was stored as it was printed has the same group once it is mapped.
func TestLaterMapped(t *testing.T) {
	var g grouping.Grouper
	e := built(t, "esbuild")
	want, mapping := g.Fingerprint(e).Deciding(), e.Mapping
	e.Mapping = nil
	f := g.Fingerprint(e)
	printed, raw := f.Describe(), f.Deciding()
	if got := g.Rewrite(printed.Language, printed.Exceptions, mapping, grouping.Learned{}, nil).Deciding(); got != want || got == raw {
		t.Errorf("mapped later: %v, want %v; printed %v", got, want, raw)
	}
}

// What is not mapped stays as it was printed, and says why.
func TestUnmapped(t *testing.T) {
	e := grouping.Error{Type: "TypeError", Message: "x", StackTrace: []string{
		"at t (https://shop.example/app.js:1:20)", "at node:internal/main:3:1", "at u (https://shop.example/app.js:1:40)",
	}}
	var g grouping.Grouper
	places := g.Places(e)
	if len(places) != 2 {
		t.Fatalf("places %v", places)
	}
	before := g.Fingerprint(e).Deciding()
	e.Mapping = trace.Mapping{places[0]: {Unmapped: trace.NoMap}}
	f := g.Fingerprint(e)
	if f.Deciding() != before {
		t.Error("the group depends on why nothing is mapped")
	}
	frames := f.Describe().Exceptions[0].Frames
	if frames[0].Function != "t" || frames[0].Printed == nil || frames[0].Printed.Unmapped != trace.NoMap || frames[2].Printed != nil {
		t.Errorf("frames %+v", frames)
	}
}
