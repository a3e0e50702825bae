package bench

import (
	"encoding/json"
	"testing"
	"time"
)

// The measured batch is legal, of the size that is claimed, and no two are alike.
func TestBody(t *testing.T) {
	b := newBody(entriesPerBatch)
	if size := len(b.text); size < 47<<10 || size > 49<<10 {
		t.Errorf("a batch has %d bytes, want about 48 KB", size)
	}
	b.stamp(time.Now(), 1)
	first := string(b.text)
	b.stamp(time.Now(), 1+entriesPerBatch*2)
	if first == string(b.text) {
		t.Error("two batches are alike")
	}
	var batch struct {
		Logs []struct {
			Timestamp time.Time
			Error     *struct{ Type string }
		}
	}
	if err := json.Unmarshal(b.text, &batch); err != nil || len(batch.Logs) != entriesPerBatch {
		t.Fatalf("%d entries, %v", len(batch.Logs), err)
	}
	errors := 0
	for _, entry := range batch.Logs {
		if entry.Error != nil {
			errors++
		}
	}
	if errors != entriesPerBatch/errorEvery {
		t.Errorf("%d errors", errors)
	}
}
