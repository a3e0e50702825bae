package admission_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/ingest/internal/admission"
)

// A holder's large bodies come as fast as they can while nobody else sends, and at its share while others do, whatever came before.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := admission.NewThrottle(admission.ThrottleLimit{PerSecond: 100, Bodies: 2}, time.Now)
		took := func(holder string, pieces int) time.Duration {
			begun := time.Now()
			throttle.Note(holder)
			for range pieces {
				throttle.Take(holder, 10)
			}
			return time.Since(begun)
		}
		if d := took("noisy", 1000); d != 0 {
			t.Errorf("alone: %s", d)
		}
		took("quiet", 1)
		if d := took("noisy", 40); d != 3*time.Second {
			t.Errorf("400 bytes beside another took %s, want a second's at once and 3 s for the rest", d)
		}
		throttle.Note("noisy")
		time.Sleep(10 * time.Second)
		if d := took("noisy", 1000); d != 0 {
			t.Errorf("alone again: %s", d)
		}
	})
}

// Ordinary bodies of a holder come at its share while others send: one that is over it waits before the next is read, and nobody else does.
func TestOrdinaryBodiesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := admission.NewThrottle(admission.ThrottleLimit{Ordinary: 100}, time.Now)
		took := func(holder string, bodies int) time.Duration {
			begun := time.Now()
			for range bodies {
				throttle.Note(holder)
				throttle.Await(holder)
				throttle.Came(holder, 10)
			}
			return time.Since(begun)
		}
		if d := took("noisy", 1000); d != 0 {
			t.Errorf("alone: %s", d)
		}
		if d := took("quiet", 10); d != 0 {
			t.Errorf("within its share: %s", d)
		}
		if d := took("noisy", 41); d < 2900*time.Millisecond || d > 3*time.Second {
			t.Errorf("410 bytes beside another took %s, want a second's at once and 3 s for the rest", d)
		}
		if d := took("quiet", 1); d != 0 {
			t.Errorf("another one waited %s", d)
		}
		throttle.Came("noisy", 900)
		begun := time.Now()
		if wait, waited := throttle.Await("noisy"); waited || wait < 8*time.Second || time.Since(begun) != 0 {
			t.Errorf("behind 9 s of bodies it waited %s: %t", wait, waited)
		}
	})
}

// A holder over its share may not begin more bodies than the limit; others may.
func TestThrottleFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := admission.NewThrottle(admission.ThrottleLimit{PerSecond: 100, Bodies: 2}, time.Now)
		throttle.Note("quiet")
		throttle.Note("noisy")
		full := func(holder string, underWay int) bool { return throttle.Full(holder, underWay) }
		if full("noisy", 8) {
			t.Error("within its share it is full")
		}
		go throttle.Take("noisy", 200) // until a second from now
		synctest.Wait()
		if full("noisy", 1) || !full("noisy", 2) || full("quiet", 8) {
			t.Errorf("over it: one %t, two %t, another's eight %t", full("noisy", 1), full("noisy", 2), full("quiet", 8))
		}
		time.Sleep(2 * time.Second)
		if full("noisy", 8) {
			t.Error("after a while it is full")
		}
	})
}
