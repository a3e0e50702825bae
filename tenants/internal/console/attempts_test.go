package console

import (
	"strconv"
	"testing"
	"time"
)

// A name gets its burst at once, then one more each refill; waiting as long as was said is always enough, and one name
// takes nothing from another.
func TestAttempts(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	tries := newAttempts(func() time.Time { return now }, 3, 10*time.Second)
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
	now = now.Add(time.Hour)
	for i := range 3 {
		if wait := tries.take("ada"); wait != 0 {
			t.Errorf("after an hour, attempt %d has to wait %s", i+1, wait)
		}
	}
}

// However many names are tried, the memory they take is bounded.
func TestAttemptsAreForgotten(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	tries := newAttempts(func() time.Time { return now }, 3, 10*time.Second)
	for i := range maxTracked + 10 {
		tries.take(strconv.Itoa(i))
	}
	if len(tries.fullAt) > maxTracked {
		t.Errorf("%d names are kept", len(tries.fullAt))
	}
	now = now.Add(time.Hour)
	tries.take("one more")
	if len(tries.fullAt) != 1 {
		t.Errorf("%d names are kept that could be forgotten", len(tries.fullAt))
	}
}

// All names are looked through at most once a second, however fast new ones come: within the second one makes room for
// another.
func TestAttemptsAreSweptRarely(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	tries := newAttempts(func() time.Time { return now }, 3, 100*time.Millisecond)
	fill := func() {
		for i := len(tries.fullAt); i < maxTracked; i++ {
			tries.take(now.String() + strconv.Itoa(i))
		}
	}
	for step, want := range []struct {
		after time.Duration
		kept  int
	}{{0, maxTracked}, {999 * time.Millisecond, maxTracked}, {time.Millisecond, 2}} { // the last one and the one of a millisecond before
		fill()
		now = now.Add(want.after)
		tries.take("another " + strconv.Itoa(step))
		if len(tries.fullAt) != want.kept {
			t.Errorf("step %d: %d names are kept, want %d", step, len(tries.fullAt), want.kept)
		}
	}
}
