package searches

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

func mustTake(t *testing.T, a *answers, key string, least, want int64) *lease {
	t.Helper()
	l, err := a.take(t.Context(), key, least, want)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return l
}

// Each gets a fifth of the free memory; beyond its share it is refused,
// and closed answers return theirs.
func TestAnswersGiveBack(t *testing.T) {
	a := newAnswers(100)
	first, second := mustTake(t, a, "a", 1, 50), mustTake(t, a, "b", 1, 50)
	if first.bytes != 20 || second.bytes != 16 {
		t.Errorf("one alone is lent %d, the second %d", first.bytes, second.bytes)
	}
	if l, err := a.take(t.Context(), "a", 1, 50); !errors.Is(err, errShareUsed) {
		t.Errorf("the first is lent %+v more, %v", l, err)
	}
	second.shrink(6)
	second.shrink(7)
	if a.lent() != 26 {
		t.Errorf("%d are lent", a.lent())
	}
	first.close()
	second.close()
	if last := mustTake(t, a, "c", 1, 5); last.bytes != 5 || a.lent() != 5 || len(a.holders) != 1 {
		t.Errorf("lent %d, %d in all, to %d", last.bytes, a.lent(), len(a.holders))
	}
}

// A new reader gets memory within the limit despite slow ones: the
// oldest answer of the largest holder is evicted.
func TestSlowReadersGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, least = 1000, 20
		a := newAnswers(limit)
		var stopped []string
		for i := range 100 {
			key := fmt.Sprintf("slow-%d", i)
			for range 2 { // the second is refused once there is little left
				l, err := a.take(t.Context(), key, least, 200)
				if errors.Is(err, errShareUsed) {
					break
				}
				if err != nil || l.bytes < least || a.lent() > limit {
					t.Fatalf("%s: %v, %d lent", key, err, a.lent())
				}
				l.allowEviction(func() {
					stopped = append(stopped, key)
					go l.close()
				})
				synctest.Wait()
			}
		}
		if len(stopped) == 0 || stopped[0] != "slow-0" {
			t.Errorf("stopped: %q", stopped)
		}
	})
}

// A wait for memory that can't be evicted ends at its own deadline, and
// stops no more readers than needed.
func TestOnlyAsManyReadersAreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(100)
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			mustTake(t, a, key, 20, 20)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.take(ctx, "f", 20, 20); !errors.Is(err, context.Canceled) {
			t.Errorf("beside searches at work: %v", err)
		}
		stops := 0
		for _, of := range a.holders {
			l := &lease{answers: a, of: of}
			l.bytes = of.bytes
			l.allowEviction(func() { stops++ })
		}
		for range 3 {
			_, _ = a.take(ctx, "f", 20, 20)
		}
		if stops != 1 || a.stoppedReaders() != 1 {
			t.Errorf("%d readers are stopped for one, %d counted", stops, a.stoppedReaders())
		}
	})
}
