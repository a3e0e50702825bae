package ledger

import (
	"reflect"
	"testing"
	"time"
)

// Accepted requests are counted by their charge. A tally adds only the
// rest, and keys in bodies.
func TestTallyCountsNothingTwice(t *testing.T) {
	tally := Tally{Organization: "acme", Process: "run", Sequence: 1, At: time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC), Uses: []Use{
		{Key: "a", Outcome: UseAccepted, Requests: 3, Entries: 30, Bytes: 300},
		{Key: "b", Outcome: UseAccepted, Requests: 2, Entries: 20, Bytes: 200, KeyInBody: 2},
		{Key: "a", Outcome: "rejected", Reason: "empty_batch", Requests: 1, Bytes: 11},
	}}
	want := []Use{{Key: "b", Outcome: UseAccepted, KeyInBody: 2}, {Key: "a", Outcome: "rejected", Reason: "empty_batch", Requests: 1, Bytes: 11}}
	if got := tally.Counted(); !reflect.DeepEqual(got, want) {
		t.Errorf("counted %+v", got)
	}
	if err := tally.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Tally){
		"no organization": func(t *Tally) { t.Organization = "" }, "no process": func(t *Tally) { t.Process = "" }, "no sequence": func(t *Tally) { t.Sequence = 0 },
		"long ago": func(t *Tally) { t.At = time.Time{} }, "negative": func(t *Tally) { t.Uses[0].Bytes = -1 }, "huge": func(t *Tally) { t.Uses[0].Requests = 1 << 60 },
	} {
		wrong := tally
		wrong.Uses = append([]Use(nil), tally.Uses...)
		change(&wrong)
		if wrong.Validate() == nil {
			t.Errorf("%s: %+v is taken", name, wrong)
		}
	}
}
