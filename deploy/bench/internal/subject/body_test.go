package subject

import (
	"encoding/json"
	"testing"
	"time"
)

// The measured batch is legal and of its declared size, and no two are alike.
func TestBody(t *testing.T) {
	b := NewBody(EntriesPerBatch)
	if size := len(b.Text); size < 47<<10 || size > 49<<10 {
		t.Errorf("a batch has %d bytes, want about 48 KB", size)
	}
	b.Stamp(time.Now(), 1)
	first := string(b.Text)
	b.Stamp(time.Now(), 1+EntriesPerBatch*2)
	if first == string(b.Text) {
		t.Error("two batches are alike")
	}
	var batch struct {
		Logs []struct {
			Timestamp time.Time
			Error     *struct{ Type string }
		}
	}
	if err := json.Unmarshal(b.Text, &batch); err != nil || len(batch.Logs) != EntriesPerBatch {
		t.Fatalf("%d entries, %v", len(batch.Logs), err)
	}
	errors := 0
	for _, entry := range batch.Logs {
		if entry.Error != nil {
			errors++
		}
	}
	if errors != EntriesPerBatch/ErrorEvery {
		t.Errorf("%d errors", errors)
	}
}
