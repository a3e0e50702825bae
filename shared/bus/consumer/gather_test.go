package consumer

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// A lane that is left behind in a transaction stays so to its end, also where
// what comes next is not late any more: its records keep their order.
func TestALaneThatIsPassedStaysPassed(t *testing.T) {
	a := assigned(Lanes{Of: func(r bus.Record) string { return string(r.Key) }})
	written := func(from, to int, at time.Time, lane func(i int) string) (records []bus.Record) {
		for i := from; i < to; i++ {
			records = append(records, bus.Record{Offset: int64(i), Key: []byte(lane(i)), Time: at})
		}
		return records
	}
	g := a.gather()
	g.take(written(0, 60, clock.Now().Add(-time.Hour), func(int) string { return "flood" }))
	if len(g.deferred) == 0 {
		t.Fatal("the flood is not held to its share")
	}
	g.take(written(60, 70, clock.Now(), func(i int) string { return []string{"flood", "quiet"}[i%2] }))
	first, overtook := g.deferred[0].offset, []int64{}
	for _, r := range g.records {
		if string(r.Key) == "flood" && r.Offset > first {
			overtook = append(overtook, r.Offset)
		}
	}
	if len(overtook) > 0 || g.records[len(g.records)-1].Offset != 69 {
		t.Errorf("records %v of the flood are applied before %d; the last one applied is %d", overtook, first, g.records[len(g.records)-1].Offset)
	}
}

// While nothing is late, a transaction holds a quarter of what was learned
// that it may: the first records of a flood can be dearer by far. What is late
// is caught up with by all of it, and so is everything without lanes.
func TestTransactionsInTimeAreSmaller(t *testing.T) {
	lanes := Lanes{Of: func(r bus.Record) string { return string(r.Key) }}
	for name, c := range map[string]struct {
		lanes Lanes
		age   time.Duration
		want  int
	}{"in time": {lanes, 0, 25}, "late": {lanes, time.Hour, 100}, "without lanes": {Lanes{}, 0, 100}} {
		g := assigned(c.lanes).gather()
		records := make([]bus.Record, 150)
		for i := range records {
			records[i] = bus.Record{Offset: int64(i), Key: []byte{byte(i)}, Time: clock.Now().Add(-c.age)}
		}
		if n := g.take(records); n != c.want || len(g.records) != c.want {
			t.Errorf("%s: %d records are taken, %d of them to be applied, want %d", name, n, len(g.records), c.want)
		}
	}
}

// assigned is an assignment whose transactions hold 100 records.
func assigned(lanes Lanes) *assignment {
	return &assignment{
		consumer: &Consumer{cfg: Config{MaxRecords: 100, MaxBytes: 1 << 20, Lanes: lanes.withDefaults()}},
		backlogs: backlogs{}, turns: newTurns(), limit: &batchLimit{1}, lately: newUsage(), input: newInput(1 << 20),
	}
}
