package batch

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzRecords: a producer's batch is read or refused, and what is read
// can be written again.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(New(1, []Pair{{Key: []byte("k"), Value: []byte("v")}, {Key: []byte("gone")}})))
	f.Fuzz(func(t *testing.T, sent []byte) {
		if len(sent) >= HeaderBytes {
			finished := Batch(bytes.Clone(sent))
			sent = finished.finished(0, finished.Count()%1000) // as if the checksum were right
		}
		b, err := Check(sent)
		if err != nil {
			return
		}
		records, err := b.Records()
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v, want %v", err, ErrCorrupt)
			}
			return
		}
		if again, err := Select(b, records); err == nil {
			if left, err := again.Records(); err != nil || len(left) != len(records) {
				t.Errorf("%d records of %d after it was written again: %v", len(left), len(records), err)
			}
		}
	})
}

// Each byte of a sealed batch is covered by a checksum.
func TestSealedBatchShowsAnyChange(t *testing.T) {
	b := New(1, []Pair{{Key: []byte("k"), Value: []byte("v")}})
	b.Seal(42)
	if !b.Sound() || b.Base() != 42 || b.End() != 43 {
		t.Fatalf("sound %t, from %d to %d", b.Sound(), b.Base(), b.End())
	}
	for i := range b {
		b[i] ^= 1
		if size, sound := Prefix(b); sound && size == len(b) && b.Sound() {
			t.Errorf("byte %d has changed, and nothing shows it", i)
		}
		b[i] ^= 1
	}
}
