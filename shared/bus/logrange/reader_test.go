package logrange_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A range is read whole, in order and alone; what was deleted is left
// out, and what is not written yet is an error.
func TestRead(t *testing.T) {
	brokers, topic := kafkatest.Shared(t), "test.logrange"
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.Keyed(0, 100, 10)...)
	bustest.PublishAll(t, brokers, topic, bustest.Keyed(100, 100, 10)...)
	r := &logrange.Reader{Brokers: brokers, Topic: topic}
	read := func(from, to, wantStart int64) {
		t.Helper()
		next := wantStart
		start, err := r.Read(t.Context(), 0, from, to, func(record bus.Record) {
			if record.Offset != next {
				t.Errorf("offset %d, want %d", record.Offset, next)
			}
			next++
		})
		if err != nil || start != wantStart || next != max(to, wantStart) {
			t.Errorf("from %d to %d: read from %d to %d, error %v", from, to, start, next, err)
		}
	}
	read(0, 200, 0)
	read(37, 150, 37)
	read(50, 50, 50)
	if _, err := r.Read(t.Context(), 0, 150, 201, func(bus.Record) {}); !errors.Is(err, bus.ErrOutsideLog) {
		t.Errorf("beyond the end: error %v", err)
	}
	bustest.CutLog(t, brokers, topic, 60)
	read(10, 120, 60)
	read(10, 40, 60)
	_, bounds, err := r.Bounds(t.Context())
	if want := (logrange.Bounds{Start: 60, End: 200}); err != nil || len(bounds) != 1 || bounds[0] != want {
		t.Errorf("bounds %v, error %v", bounds, err)
	}
}

// What comes from now on is passed on, of all partitions, and nothing earlier.
func TestFollow(t *testing.T) {
	brokers, topic := kafkatest.Shared(t), "test.logrange.follow"
	bustest.Ensure(t, brokers, topic, 3, nil)
	bustest.PublishAll(t, brokers, topic, bustest.Keyed(0, 100, 10)...)
	begun, came := make(chan struct{}), make(chan int, 200)
	stop := bustest.Run(t, func(ctx context.Context) error {
		_ = (&logrange.Reader{Brokers: brokers, Topic: topic}).Follow(ctx, testenv.Logger(t), func() { close(begun) }, func(r bus.Record) { came <- r.Partition })
		return nil
	})
	<-begun
	bustest.PublishAll(t, brokers, topic, bustest.Keyed(100, 100, 10)...)
	partitions := map[int]int{}
	for range 100 {
		partitions[<-came]++
	}
	stop()
	if len(came) > 0 || len(partitions) != 3 {
		t.Errorf("%d more came, %v by partition", len(came), partitions)
	}
}
