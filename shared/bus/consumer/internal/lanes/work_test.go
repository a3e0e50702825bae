package lanes

import (
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// On a machine so slow that an empty transaction exceeds the target,
// transactions do not become smaller.
func TestBatchLimitOfASlowMachine(t *testing.T) {
	most := Amount{1000, 1 << 20, 1 << 20}
	l := NewBatchLimit(Config{Of: func(bus.Record) string { return "" }})
	for range 50 {
		limit := l.Limit(most)
		l.Learn(Timing{Effect: time.Duration(limit.Records) * time.Millisecond, Overhead: time.Second}, 250*time.Millisecond, Amount{Records: limit.Records}, limit, most)
	}
	if l.scale < 1 {
		t.Errorf("transactions are scaled to %v", l.scale)
	}
}

// One slow transaction is enough, however small: records that gather
// meanwhile do not make the next one even slower.
func TestBatchLimitLearnsAtOnce(t *testing.T) {
	most, target := Amount{1000, 8 << 20, 8 << 20}, 250*time.Millisecond
	l := &BatchLimit{1}
	l.Learn(Timing{Effect: time.Second}, target, Amount{Records: 5, Cost: 1 << 20}, most, most)
	if limit := l.Limit(most); limit.Cost > 1<<18 {
		t.Errorf("a megabyte took a second, and the next transaction may hold %d bytes", limit.Cost)
	}
	for range 8 {
		limit := l.Limit(most)
		l.Learn(Timing{Effect: time.Millisecond}, target, limit, limit, most)
	}
	if l.scale < 1 {
		t.Errorf("all is quick again, and transactions are scaled to %v", l.scale)
	}
}

// A transaction takes about the target time, whatever a record costs,
// and has full size if that is quick.
func TestBatchLimit(t *testing.T) {
	most, target := Amount{1000, 1 << 20, 1 << 20}, 250*time.Millisecond
	for _, record := range []time.Duration{time.Microsecond, time.Millisecond, 20 * time.Millisecond, time.Second} {
		l := NewBatchLimit(Config{Of: func(bus.Record) string { return "" }})
		var took time.Duration
		for range 50 {
			limit := l.Limit(most)
			took = time.Duration(limit.Records) * record
			l.Learn(Timing{Effect: took}, target, Amount{Records: limit.Records}, limit, most)
		}
		if want := min(1000*record, max(record, target/3)); took < want || took > max(target*3/2, 4*record) {
			t.Errorf("%v a record: transactions of %v", record, took)
		}
	}
}

// Transactions are short while a consumer is in time; the later it is,
// the larger they become, by a part of its delay.
func TestALateConsumerHasLargerTransactions(t *testing.T) {
	lanes, most := Config{Of: func(bus.Record) string { return "" }}.WithDefaults(), Amount{1000, 1000, 1000}
	for waited, want := range map[time.Duration][2]int{-time.Hour: {50, 75}, 200 * time.Millisecond: {50, 75}, 2 * time.Second: {350, 500}, time.Hour: {1000, 1000}} {
		l := NewBatchLimit(lanes)
		for range 20 {
			limit := l.Limit(most)
			l.Learn(Timing{Effect: time.Duration(limit.Records) * time.Millisecond}, lanes.TargetAfter(waited), limit, limit, most)
		}
		if got := l.Limit(most).Records; got < want[0] || got > want[1] {
			t.Errorf("after %s a transaction holds %d records, want %d to %d", waited, got, want[0], want[1])
		}
	}
}

// A lane deferred in a transaction stays so to its end, even if the
// records that follow are not late: its records keep their order.
func TestALaneThatIsPassedStaysPassed(t *testing.T) {
	written := func(from, to int, at time.Time, lane func(i int) string) (records []bus.Record) {
		for i := from; i < to; i++ {
			records = append(records, bus.Record{Offset: int64(i), Key: []byte(lane(i)), Time: at})
		}
		return records
	}
	g := gatheringOf(Config{Of: func(r bus.Record) string { return string(r.Key) }})
	g.Take(written(0, 60, clock.Now().Add(-time.Hour), func(int) string { return "flood" }))
	if len(g.Deferred) == 0 {
		t.Fatal("the flood is not held to its share")
	}
	g.Take(written(60, 70, clock.Now(), func(i int) string { return []string{"flood", "quiet"}[i%2] }))
	first, overtook := g.Deferred[0].Mark.Offset, []int64{}
	for _, r := range g.Records {
		if string(r.Key) == "flood" && r.Offset > first {
			overtook = append(overtook, r.Offset)
		}
	}
	if len(overtook) > 0 || g.Records[len(g.Records)-1].Offset != 69 {
		t.Errorf("records %v of the flood are applied before %d; the last one applied is %d", overtook, first, g.Records[len(g.Records)-1].Offset)
	}
	if mark := g.Marks()[0]; mark.Offset != 69 {
		t.Errorf("the last record is at 69, its mark at %d", mark.Offset)
	}
	if deferred := (Work{Records: g.Records[:1], Deferred: g.Deferred}); deferred.Marks()[0] != g.Deferred[len(g.Deferred)-1].Mark {
		t.Errorf("the last record is deferred, the mark is %+v", deferred.Marks()[0])
	}
}

// While nothing is late, a lane has at most a quarter of a
// transaction's learned limit: the first records of a flood may cost
// far more. Many lanes fill all of it.
func TestALaneInTimeHasAQuarter(t *testing.T) {
	lanes := Config{Of: func(r bus.Record) string { return string(r.Key) }}
	for name, c := range map[string]struct {
		config Config
		lanes  int
		age    time.Duration
		want   int
	}{
		"one": {lanes, 1, 0, 25}, "two": {lanes, 2, 0, 50}, "many": {lanes, 150, 0, 100},
		"many, late": {lanes, 150, time.Hour, 100}, "without lanes": {Config{}, 1, 0, 100},
	} {
		g := gatheringOf(c.config)
		records := make([]bus.Record, 150)
		for i := range records {
			records[i] = bus.Record{Offset: int64(i), Key: []byte{byte(i % c.lanes)}, Time: clock.Now().Add(-c.age)}
		}
		if n := g.Take(records); n != c.want || len(g.Records) != c.want {
			t.Errorf("%s: %d records are taken, %d of them to be applied, want %d", name, n, len(g.Records), c.want)
		}
	}
}

// A record larger than a lane's quarter shares its transaction with
// small ones of other lanes, not with another large one.
func TestLargeRecordsInTimeComeOneByOne(t *testing.T) {
	r := shares{limit: Amount{100, 1000, 1000}, most: Amount{25, 250, 1000}, recent: NewUsage(), lanes: map[string]Amount{}}
	large, small := Amount{1, 300, 300}, Amount{1, 10, 10}
	got := []decision{r.admit("a", large, laneState{}), r.admit("b", small, laneState{}), r.admit("c", large, laneState{}), r.admit("a", small, laneState{})}
	if want := []decision{applies, applies, waits, waits}; !slices.Equal(got, want) {
		t.Errorf("decisions %v, want %v", got, want)
	}
}

// gatheringOf returns a transaction for 100 records.
func gatheringOf(lanes Config) *Gathering {
	return NewGathering(lanes.WithDefaults(), Amount{100, 1 << 20, 1 << 20}, NewUsage(), Backlogs{}, NewTurns())
}
