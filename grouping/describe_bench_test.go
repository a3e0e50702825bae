package grouping

import "testing"

// The cost of a new kind of error beyond its hashes: description and reason.
func BenchmarkDescribe(b *testing.B) {
	e := javaVariants[0].base
	for len(e.StackTrace) < 16 {
		e.StackTrace = append(e.StackTrace, javaVariants[0].base.StackTrace...)
	}
	var g Grouper
	f := g.Fingerprint(e)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = f.Describe(), f.Explain()
	}
}
