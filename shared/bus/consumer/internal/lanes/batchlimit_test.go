package lanes

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
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
