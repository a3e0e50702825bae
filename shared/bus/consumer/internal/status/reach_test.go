package status

import (
	"testing"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
)

func TestGoalsAreMetOnceAllIsApplied(t *testing.T) {
	g := NewGoals()
	g.Add(0)
	g.Add(1)
	g.Reached(map[int]int64{0: 7})
	if g.Met(nil) {
		t.Fatal("met before the ends are known")
	}
	g.Seen(0, 7)
	g.Seen(0, 9) // written later
	g.Seen(1, 0)
	behind := lanes.Backlogs{{Lane: "a", Partition: 0}: {Next: 3, Last: 5}}
	g.Reached(map[int]int64{1: 0})
	if g.Met(behind) {
		t.Fatal("met while a lane is behind")
	}
	behind[lanes.Key{Lane: "a", Partition: 0}] = lanes.Backlog{Next: 7, Last: 8}
	if !g.Met(behind) || g.Open() {
		t.Errorf("open: %v", g.ends)
	}
}

func TestAnEmptyPartitionIsReadBeforeItsGoalIsMet(t *testing.T) {
	g := NewGoals()
	g.Add(0)
	g.Seen(0, 0)
	if g.Met(nil) {
		t.Fatal("met before it is read")
	}
	if g.Reached(map[int]int64{0: 0}); !g.Met(nil) {
		t.Errorf("open: %v", g.ends)
	}
}
