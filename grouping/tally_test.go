package grouping

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A tally counts every occurrence once, keeps tenants and projects apart,
// and spans their times and environments.
func TestTally(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tally := NewTally()
	add := func(organization, project, typ, environment string, severity Severity, after time.Duration) {
		tally.Add(Occurrence{Organization: organization, Project: project, Entry: fmt.Sprint("e", after), Accepted: at, Expires: at, At: at.Add(after), Severity: severity, Environment: environment, Error: Error{Type: typ}})
	}
	add("o2", "p", "A", "prod", SeverityError, 0)
	for i := range 20 {
		add("o1", "p", "A", []string{"prod", "dev"}[i%2], []Severity{SeverityError, SeverityFatal}[i%2], time.Duration(10-i)*time.Second)
	}
	add("o1", "q", "A", "prod", SeverityInfo, 0)
	add("o1", "p", "B", "", SeverityInfo, 0)
	counts := tally.Counts()
	if len(counts) != 4 || counts[3].Organization != "o2" || counts[2].Project != "q" {
		t.Fatalf("%d counts", len(counts))
	}
	i := slices.IndexFunc(counts, func(c *Count) bool { return c.N == 20 })
	c := counts[i]
	if !c.First.Equal(at.Add(-9*time.Second)) || !c.Last.Equal(at.Add(10*time.Second)) || c.Severities != SeverityError|SeverityFatal ||
		!slices.Equal(c.Environments, []string{"dev", "prod"}) || c.Deciding() != counts[3].Deciding() {
		t.Errorf("count %+v", c)
	}
	if n := len(c.Samples); n != FirstSamples+newestSamples || c.Samples[0].Entry != "e10s" || c.Samples[n-1].Entry != "e-9s" {
		t.Errorf("samples %+v", c.Samples)
	}
}

// The slots always hold the first samples and the newest, all of
// them as soon as there are enough.
func TestSampleSlot(t *testing.T) {
	held := map[int]int64{}
	for n := range int64(1000) {
		held[SampleSlot(n)] = n
		if want := min(int(n)+1, FirstSamples+NewestSamples); len(held) != want {
			t.Fatalf("%d of %d samples are held, want %d", len(held), n+1, want)
		}
	}
	for slot, n := range held {
		if slot < FirstSamples && n != int64(slot) || slot >= FirstSamples && n < 1000-NewestSamples {
			t.Errorf("slot %d holds %d", slot, n)
		}
	}
}

// Severities are the five words of an entry.
func TestSeverity(t *testing.T) {
	for _, word := range []string{"debug", "info", "warn", "error", "fatal"} {
		if s, ok := ParseSeverity(word); !ok || !slices.Equal(s.Names(), []string{word}) {
			t.Errorf("%q is %v", word, s.Names())
		}
	}
	if _, ok := ParseSeverity("Error"); ok {
		t.Error("Error is a severity")
	}
}

// Environments are a sorted set with a bound.
func TestAddNames(t *testing.T) {
	var set []string
	for i := range 2 * MaxEnvironments {
		set = AddNames(set, fmt.Sprint(i%60), "")
	}
	if len(set) != MaxEnvironments || !slices.IsSorted(set) {
		t.Errorf("%v", set)
	}
}

// What describes a new group describes its first sample too:
// that one is not fingerprinted again.
func TestNewGroupIsDescribedOnce(t *testing.T) {
	tally, at := NewTally(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tally.Add(Occurrence{Accepted: at, At: at, Error: Error{Type: "Refused", Message: "no room", StackTrace: []string{"at com.acme.A.b(A.java:1)"}}})
	c := tally.Counts()[0]
	about, why := c.Describe(&Grouper{})
	c.Samples[0].Describe(nil) // a nil Grouper fingerprints nothing
	if about.Title != "Refused: no room" || why.Hash != c.Deciding().Hash || len(c.Samples[0].Exceptions) != 1 {
		t.Errorf("described as %+v by %+v, with the sample %+v", about, why, c.Samples[0])
	}
}
