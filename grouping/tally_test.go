package grouping

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A tally counts every occurrence once, keeps tenants and projects apart, and spans their times and environments.
func TestTally(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tally := NewTally()
	add := func(organization, project, typ, environment string, severity Severity, after time.Duration) {
		tally.Add(Occurrence{organization, project, fmt.Sprint("e", after), at.Add(after), severity, environment, Error{Type: typ}})
	}
	add("o2", "p", "A", "prod", ErrorSeverity, 0)
	for i := range 20 {
		add("o1", "p", "A", []string{"prod", "dev"}[i%2], []Severity{ErrorSeverity, Fatal}[i%2], time.Duration(10-i)*time.Second)
	}
	add("o1", "q", "A", "prod", Info, 0)
	add("o1", "p", "B", "", Info, 0)
	counts := tally.Counts()
	if len(counts) != 4 || counts[3].Organization != "o2" || counts[2].Project != "q" {
		t.Fatalf("%d counts", len(counts))
	}
	i := slices.IndexFunc(counts, func(c *Count) bool { return c.N == 20 })
	c := counts[i]
	if !c.First.Equal(at.Add(-9*time.Second)) || !c.Last.Equal(at.Add(10*time.Second)) || c.Severities != ErrorSeverity|Fatal ||
		!slices.Equal(c.Environments, []string{"dev", "prod"}) || c.Deciding() != counts[3].Deciding() {
		t.Errorf("count %+v", c)
	}
	if n := len(c.Samples); n != FirstSamples+newestAtOnce || c.Samples[0].Entry != "e10s" || c.Samples[n-1].Entry != "e-9s" {
		t.Errorf("samples %+v", c.Samples)
	}
}

// Every slot holds one of the first or of the newest occurrences, whatever the sizes of the steps.
func TestSampleSlot(t *testing.T) {
	held := map[int]int64{}
	for n := int64(0); n < 1000; n++ {
		if slot, ok := SampleSlot(n, n+1); ok {
			held[slot] = n
		}
	}
	for slot := range FirstSamples {
		if held[slot] != int64(slot) {
			t.Errorf("slot %d holds %d", slot, held[slot])
		}
	}
	for slot := FirstSamples; slot < FirstSamples+NewestSamples; slot++ {
		if held[slot] < 1000-NewestSamples {
			t.Errorf("slot %d holds %d", slot, held[slot])
		}
	}
	if len(held) != FirstSamples+NewestSamples {
		t.Errorf("%d slots", len(held))
	}
	if _, ok := SampleSlot(500, 1000); ok {
		t.Error("an old occurrence is kept")
	}
}

// Severities are the five words of an entry.
func TestSeverity(t *testing.T) {
	for _, word := range []string{"debug", "info", "warn", "error", "fatal"} {
		if s, ok := ParseSeverity(word); !ok || !slices.Equal(s.Words(), []string{word}) {
			t.Errorf("%q is %v", word, s.Words())
		}
	}
	if _, ok := ParseSeverity("Error"); ok {
		t.Error("Error is a severity")
	}
}

// Environments are a sorted set with a bound.
func TestAddEnvironments(t *testing.T) {
	var set []string
	for i := range 2 * MaxEnvironments {
		set = AddEnvironments(set, fmt.Sprint(i%60), "")
	}
	if len(set) != MaxEnvironments || !slices.IsSorted(set) {
		t.Errorf("%v", set)
	}
}
