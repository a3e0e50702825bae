package ledger

import (
	"testing"
	"time"
)

func TestRetention(t *testing.T) {
	kept, now := DefaultRetention(), time.Date(2026, 11, 22, 23, 59, 0, 0, time.UTC)
	if since := kept.TransfersSince(now); !since.Equal(time.Date(2024, 10, 22, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("transfers are kept since %s", since)
	}
	if since := kept.BooksSince(now); !since.Equal(time.Date(2016, 11, 22, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("books are kept since %s", since)
	}
	for kept, fine := range map[Retention]bool{kept: true, {1, 3, 3}: true, {1, 2, 3}: false, {1, 4, 3}: false, {4, 3, 3}: false, {0, 3, 3}: false, {}: false} {
		if err := kept.Validate(); (err == nil) != fine {
			t.Errorf("%+v: %v", kept, err)
		}
	}
}
