package fairness

import (
	"fmt"
	"os"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
)

// A load is how many processors each process kept busy: an attack that makes
// no work for others costs its own process some, and they share a machine.
type load struct {
	weir, postgres, attack, watch float64
}

// String returns only numbers: the heading names them.
func (l load) String() string {
	return fmt.Sprintf("%.2f/%.2f/%.2f/%.2f", l.weir, l.postgres, l.attack, l.watch)
}

// watchLoad starts watching the processes; the returned function ends that.
func (r *run) watchLoad(attacker int) func() load {
	begun, before := time.Now(), r.used(attacker)
	return func() load {
		after, wall := r.used(attacker), time.Since(begun).Seconds()
		part := func(process int) float64 { return (after[process] - before[process]).Seconds() / wall }
		return load{part(0), part(1), part(2), part(3)}
	}
}

// used returns each process's processor time; 0 if unknown.
func (r *run) used(attacker int) [4]time.Duration {
	return [4]time.Duration{
		measure.UsageOf(r.subject.Pid()).CPU, measure.FamilyUsage(r.postmaster).CPU, measure.UsageOf(attacker).CPU, measure.UsageOf(os.Getpid()).CPU,
	}
}
