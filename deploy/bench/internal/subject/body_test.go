package subject

import (
	"encoding/json"
	"testing"
	"time"
)

// The measured batch is legal, and no two are alike.
func TestBody(t *testing.T) {
	b, at := NewBody(EntriesPerBatch, 1), time.Now()
	b.Fill(at)
	first := string(b.Text)
	b.Fill(at)
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
	errors := int64(0)
	for _, entry := range batch.Logs {
		if entry.Error != nil {
			errors++
		}
	}
	if errors != b.Errors || errors == 0 {
		t.Errorf("%d errors, %d by its own account", errors, b.Errors)
	}
}
