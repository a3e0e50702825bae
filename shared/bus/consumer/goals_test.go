package consumer

import (
	"testing"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
)

func TestGoalsAreMetOnceAllIsApplied(t *testing.T) {
	g := newGoals()
	g.add(0)
	g.add(1)
	g.reached(map[int]int64{0: 7})
	if g.met(nil) {
		t.Fatal("met before the ends are known")
	}
	g.seen(0, 7)
	g.seen(0, 9) // written later
	g.seen(1, 0)
	behind := lanes.Backlogs{{Lane: "a", Partition: 0}: {Next: 3, Last: 5}}
	g.reached(map[int]int64{1: 0})
	if g.met(behind) {
		t.Fatal("met while a lane is behind")
	}
	behind[lanes.Key{Lane: "a", Partition: 0}] = lanes.Backlog{Next: 7, Last: 8}
	if !g.met(behind) || g.open() {
		t.Errorf("open: %v", g.ends)
	}
}

func TestAnEmptyPartitionIsReadBeforeItsGoalIsMet(t *testing.T) {
	g := newGoals()
	g.add(0)
	g.seen(0, 0)
	if g.met(nil) {
		t.Fatal("met before it is read")
	}
	if g.reached(map[int]int64{0: 0}); !g.met(nil) {
		t.Errorf("open: %v", g.ends)
	}
}
