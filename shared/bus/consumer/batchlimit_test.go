package consumer

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
)

// Where a machine is so slow that a transaction without any effect takes longer
// than one should, those with an effect do not become smaller.
func TestBatchLimitOfASlowMachine(t *testing.T) {
	most := amount{1000, 1 << 20, 1 << 20}
	l := newBatchLimit(Lanes{Of: func(bus.Record) string { return "" }})
	for range 50 {
		limit := l.limit(most)
		l.learn(timing{effect: time.Duration(limit.records) * time.Millisecond, overhead: time.Second}, 250*time.Millisecond, amount{records: limit.records}, limit, most)
	}
	if l.scale < 1 {
		t.Errorf("transactions are scaled to %v", l.scale)
	}
}

// One transaction that takes too long is enough, however small it was: those
// that gather meanwhile do not make the next one longer still.
func TestBatchLimitLearnsAtOnce(t *testing.T) {
	most, target := amount{1000, 8 << 20, 8 << 20}, 250*time.Millisecond
	l := &batchLimit{1}
	l.learn(timing{effect: time.Second}, target, amount{records: 5, cost: 1 << 20}, most, most)
	if limit := l.limit(most); limit.cost > 1<<18 {
		t.Errorf("a megabyte took a second, and the next transaction may hold %d bytes", limit.cost)
	}
	for range 8 {
		limit := l.limit(most)
		l.learn(timing{effect: time.Millisecond}, target, limit, limit, most)
	}
	if l.scale < 1 {
		t.Errorf("all is quick again, and transactions are scaled to %v", l.scale)
	}
}

// A transaction takes about as long as it should, whatever a record costs, and
// is as large as it may be where that is quick.
func TestBatchLimit(t *testing.T) {
	most, target := amount{1000, 1 << 20, 1 << 20}, 250*time.Millisecond
	for _, record := range []time.Duration{time.Microsecond, time.Millisecond, 20 * time.Millisecond, time.Second} {
		l := newBatchLimit(Lanes{Of: func(bus.Record) string { return "" }})
		var took time.Duration
		for range 50 {
			limit := l.limit(most)
			took = time.Duration(limit.records) * record
			l.learn(timing{effect: took}, target, amount{records: limit.records}, limit, most)
		}
		if want := min(1000*record, max(record, target/3)); took < want || took > max(target*3/2, 4*record) {
			t.Errorf("%v a record: transactions of %v", record, took)
		}
	}
}

// While a consumer is in time its transactions are short; the later it is, the
// larger they become, by a part of what all wait anyway.
func TestALateConsumerHasLargerTransactions(t *testing.T) {
	lanes, most := Lanes{Of: func(bus.Record) string { return "" }}.withDefaults(), amount{1000, 1000, 1000}
	for waited, want := range map[time.Duration][2]int{-time.Hour: {50, 75}, 200 * time.Millisecond: {50, 75}, 2 * time.Second: {350, 500}, time.Hour: {1000, 1000}} {
		l := newBatchLimit(lanes)
		for range 20 {
			limit := l.limit(most)
			l.learn(timing{effect: time.Duration(limit.records) * time.Millisecond}, lanes.target(waited), limit, limit, most)
		}
		if got := l.limit(most).records; got < want[0] || got > want[1] {
			t.Errorf("after %s a transaction holds %d records, want %d to %d", waited, got, want[0], want[1])
		}
	}
}
