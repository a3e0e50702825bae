package measure

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// The ranks around the 99th percentile are those of the binomial
// distribution; too few samples leave the interval open above.
func TestInterval(t *testing.T) {
	for n, want := range map[int][2]time.Duration{
		0: {0, Unbounded}, 1: {1, Unbounded}, 30: {29, Unbounded}, 298: {292, Unbounded}, 299: {293, 299}, 360: {353, 360}, 1000: {985, 996},
	} {
		samples := &Samples{}
		for i := range n {
			samples.Add(time.Duration(n - i))
		}
		if low, high := samples.Interval(99); [2]time.Duration{low, high} != want {
			t.Errorf("the 99th percentile of %d samples is between %d and %d, want %d", n, low, high, want)
		}
	}
}

// A rate is kept by few workers, and a call that waited for one knows since
// when; without a rate workers go on until one fails.
func TestLoad(t *testing.T) {
	var calls, late atomic.Int64
	took, err := Load{Workers: 1, For: 50 * time.Millisecond, PerSecond: 200}.Run(t.Context(), func(_ context.Context, _ int, due time.Time) error {
		if calls.Add(1) == 1 {
			time.Sleep(20 * time.Millisecond) // longer than three calls take, so that those behind it are late
		} else if time.Since(due) > 5*time.Millisecond {
			late.Add(1)
		}
		return nil
	})
	if err != nil || calls.Load() != 10 || late.Load() == 0 || took < 40*time.Millisecond {
		t.Errorf("%d calls, %d late, in %s, %v", calls.Load(), late.Load(), took, err)
	}
	failed := errors.New("failed")
	if _, err := (Load{Workers: 2}).Run(t.Context(), func(context.Context, int, time.Time) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("ended with %v", err)
	}
}

// Context switches of all threads count, and a process that is unknown has none.
func TestSwitches(t *testing.T) {
	const waits = 20
	since := Switches(Process{Pid: os.Getpid()}, Process{})
	for range waits { // each leaves the processor
		time.Sleep(time.Millisecond)
	}
	if each := since(1); runtime.GOOS == "linux" && each[0] < waits/2 || each[1] != 0 {
		t.Errorf("%v context switches in %d waits", each, waits)
	}
}
