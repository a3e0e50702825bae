package faulttest

import (
	"context"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/fault"
)

// Each injects each fault into a server and checks its effect: ask
// fails while it lasts, and works again after it.
func Each(t testing.TB, s *fault.Server, ask func(context.Context) error) {
	t.Helper()
	works := func() {
		t.Helper()
		testenv.Eventually(t, time.Minute, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return ask(ctx)
		})
	}
	works()
	for name, do := range map[string]func(){
		"paused":     func() { s.Pause(t) },
		"killed":     func() { s.Kill(t) },
		"cut":        s.Cut,
		"black hole": s.BlackHole,
	} {
		do()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := ask(ctx); err == nil {
			t.Errorf("%s answers while %s", s.Name, name)
		}
		cancel()
		s.Heal(t)
		works()
	}
	s.Restart(t)
	works()
	s.Delay(20 * time.Millisecond)
	begin := time.Now()
	works()
	if took := time.Since(begin); took < 40*time.Millisecond {
		t.Errorf("%s answered within %s, over a network that takes 20 ms each way", s.Name, took)
	}
}
