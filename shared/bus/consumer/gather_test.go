package consumer

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/budget"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/follow"
)

// A lane that is left behind in a transaction stays so to its end, also where what comes next is not late any more: its records keep
// their order.
func TestALaneThatIsPassedStaysPassed(t *testing.T) {
	lanes := Lanes{Of: func(r bus.Record) string { return string(r.Key) }}.withDefaults()
	a := &assignment{
		consumer: &Consumer{cfg: Config{MaxRecords: 100, MaxBytes: 1 << 20, Lanes: lanes}},
		backlogs: map[laneKey]backlog{}, turns: newTurns(), limit: &batchLimit{1}, room: budget.New(1 << 20),
	}
	written := func(from, to int, at time.Time, lane func(i int) string) *follow.Chunk {
		c := &follow.Chunk{Next: int64(to)}
		for i := from; i < to; i++ {
			c.Records = append(c.Records, bus.Record{Offset: int64(i), Key: []byte(lane(i)), Time: at})
		}
		return c
	}
	g := a.gather()
	a.consume(written(0, 50, clock.Now().Add(-time.Hour), func(int) string { return "flood" }), g)
	if len(g.deferred) == 0 {
		t.Fatal("the flood is not held to its share")
	}
	a.consume(written(50, 60, clock.Now(), func(i int) string { return []string{"flood", "quiet"}[i%2] }), g)
	first, overtook := g.deferred[0].offset, []int64{}
	for _, r := range g.records {
		if string(r.Key) == "flood" && r.Offset > first {
			overtook = append(overtook, r.Offset)
		}
	}
	if len(overtook) > 0 || g.records[len(g.records)-1].Offset != 59 {
		t.Errorf("records %v of the flood are applied before %d; the last one applied is %d", overtook, first, g.records[len(g.records)-1].Offset)
	}
}
