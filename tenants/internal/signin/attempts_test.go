package signin

import (
	"testing"
	"time"
)

// A name gets its burst at once, then so many a minute; waiting as long
// as returned always suffices, and names do not affect each other.
func TestAttempts(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	tries := newAttempts(func() time.Time { return now }, 3, 6)
	for i := range 3 {
		if wait := tries.take("ada"); wait != 0 {
			t.Fatalf("attempt %d has to wait %s", i+1, wait)
		}
	}
	for range 5 { // refused attempts take nothing
		if wait := tries.take("ada"); wait != 10*time.Second {
			t.Fatalf("the fourth has to wait %s, want 10s", wait)
		}
	}
	if wait := tries.take("bob"); wait != 0 {
		t.Errorf("another name has to wait %s", wait)
	}
	now = now.Add(10 * time.Second)
	if first, second := tries.take("ada"), tries.take("ada"); first != 0 || second == 0 {
		t.Errorf("after the wait: %s, then %s; want one more attempt", first, second)
	}
}
