package admission_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/ingest/internal/admission"
)

// A holder's large bodies are unlimited while it is alone, and limited
// to its share while others send.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := admission.NewThrottle(admission.ThrottleLimit{PerSecond: 100, Bodies: 2}, time.Now)
		took := func(holder string, pieces int) time.Duration {
			begun := time.Now()
			throttle.Note(holder)
			for range pieces {
				_, _ = throttle.Take(t.Context(), holder, 10)
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

// Ordinary bodies of a holder are limited to its share while others
// send: beyond it only its own next body waits.
func TestOrdinaryBodiesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := admission.NewThrottle(admission.ThrottleLimit{Ordinary: 100}, time.Now)
		took := func(holder string, bodies int) time.Duration {
			begun := time.Now()
			for range bodies {
				throttle.Note(holder)
				_, _ = throttle.Await(t.Context(), holder)
				throttle.Received(holder, 10)
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
		throttle.Received("noisy", 900)
		begun := time.Now()
		if wait, err := throttle.Await(t.Context(), "noisy"); !errors.Is(err, admission.ErrOverShare) || wait < 8*time.Second || time.Since(begun) != 0 {
			t.Errorf("behind 9 s of bodies it waits %s: %v", wait, err)
		}
	})
}

// A holder over its share may begin no more bodies than the limit; others may.
func TestThrottleFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := admission.NewThrottle(admission.ThrottleLimit{PerSecond: 100, Bodies: 2}, time.Now)
		throttle.Note("quiet")
		throttle.Note("noisy")
		full := func(holder string, underWay int) bool { return throttle.Full(holder, underWay) }
		if full("noisy", 8) {
			t.Error("within its share it is full")
		}
		go func() { _, _ = throttle.Take(t.Context(), "noisy", 200) }() // until a second from now
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

// A client that leaves no longer waits, and its wait is counted.
func TestThrottleEndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := admission.NewThrottle(admission.ThrottleLimit{PerSecond: 100, Bodies: 2, Ordinary: 100}, time.Now)
		throttle.Note("quiet")
		throttle.Note("noisy")
		throttle.Received("noisy", 500)
		for name, wait := range map[string]func(ctx context.Context) error{
			"ordinary": func(ctx context.Context) error { _, err := throttle.Await(ctx, "noisy"); return err },
			"large":    func(ctx context.Context) error { _, err := throttle.Take(ctx, "noisy", 500); return err },
		} {
			ctx, leave := context.WithTimeout(t.Context(), time.Second)
			before := throttle.Waited()
			ended := make(chan error, 1)
			go func() { ended <- wait(ctx) }()
			synctest.Wait()
			if throttle.Waiting() != 1 {
				t.Errorf("%s: %d wait", name, throttle.Waiting())
			}
			if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || throttle.Waiting() != 0 || throttle.Waited()-before != time.Second {
				t.Errorf("%s: %v, %d wait, waited %s", name, err, throttle.Waiting(), throttle.Waited()-before)
			}
			leave()
		}
	})
}

// What a body takes of a processor besides, all later bodies of its holder wait
// for while others send.
func TestWorkIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := admission.NewThrottle(admission.ThrottleLimit{Ordinary: 1000, PerSecond: 1000, Bodies: 2}, time.Now)
		throttle.Worked("alone", time.Minute)
		throttle.Note("quiet")
		throttle.Note("noisy")
		throttle.Worked("noisy", time.Duration(runtime.GOMAXPROCS(0))*3*time.Second)
		for holder, want := range map[string]time.Duration{"noisy": 2 * time.Second, "quiet": 0, "alone": 0} {
			if wait, err := throttle.Due(holder); err != nil || wait.Round(10*time.Millisecond) != want {
				t.Errorf("%s waits for %s, %v, want %s", holder, wait, err, want)
			}
		}
		if wait, _ := throttle.Take(t.Context(), "noisy", 1); wait < 2*time.Second {
			t.Errorf("a large body waits for %s", wait)
		}
	})
}
