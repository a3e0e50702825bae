package loadgen

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// Placeholders are filled, all else stays, also a language's braces.
func TestExpand(t *testing.T) {
	d := newDice(1)
	if got := d.expand("#3 {main} of {nothing"); got != "#3 {main} of {nothing" {
		t.Errorf("braces: %q", got)
	}
	if got := d.expand("line {40~0} of {7~0}"); got != "line 40 of 7" {
		t.Errorf("ranges: %q", got)
	}
	if a, b := d.expand("{hex}"), d.expand("{hex}"); a == b {
		t.Errorf("twice %q", a)
	}
}

// Every service fails in its own language's way, and every template
// is filled completely.
func TestBatchesAreLegal(t *testing.T) {
	d := newDice(2)
	for _, s := range services() {
		for range 20 {
			body, _, err := s.batch(d, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			var sent struct{ Logs []entry }
			if err := json.Unmarshal(body, &sent); err != nil || len(sent.Logs) < smallestBatch || len(sent.Logs) > largestBatch {
				t.Fatalf("%s: %d entries, %v", s.Name, len(sent.Logs), err)
			}
			if text := string(body); strings.Contains(strings.ReplaceAll(text, "{main}", ""), "~") {
				t.Errorf("%s: a placeholder was not filled: %s", s.Name, text)
			}
		}
	}
}
