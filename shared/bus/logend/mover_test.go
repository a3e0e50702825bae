package logend_test

import (
	"os"
	"slices"
	"testing"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/logend"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A moved log has all its records after the offset, and nothing else,
// byte for byte; a second move changes nothing.
func TestMove(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.logend"
	bustest.Ensure(t, brokers, topic, 2, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	bustest.Publish(t, p, topic, 0, 1_200, 40)
	before := read(t, brokers, topic)
	mover := &logend.Mover{Brokers: brokers, Topic: topic}
	const to = 200_000 // several batches, the last one smaller
	for range 2 {
		for partition := range 2 {
			done, err := mover.Move(t.Context(), partition, read(t, brokers, topic)[partition].End, to)
			if had := len(before[partition].records); err != nil || done.To < to || done.Copied != had {
				t.Fatalf("partition %d: %+v, %v, want %d copied", partition, done, err, had)
			}
		}
		after := read(t, brokers, topic)
		for partition := range after {
			if !slices.EqualFunc(after[partition].records, before[partition].records, same) {
				t.Errorf("partition %d has %d records, had %d", partition, len(after[partition].records), len(before[partition].records))
			}
			if start := after[partition].Start; start < to {
				t.Errorf("partition %d begins at %d", partition, start)
			}
		}
	}
	next := bustest.Publish(t, p, topic, 5_000, 100, 40)
	if first := slices.MinFunc(next, func(a, b bus.Position) int { return int(a.Offset - b.Offset) }); first.Offset < to {
		t.Errorf("what comes next is at %+v", first)
	}
}

func same(a, b bus.Record) bool {
	return string(a.Key) == string(b.Key) && string(a.Value) == string(b.Value) && a.Time.Equal(b.Time) &&
		slices.EqualFunc(a.Headers, b.Headers, func(a, b bus.Header) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) })
}

type partition struct {
	logrange.Bounds
	records []bus.Record
}

func read(t *testing.T, brokers []string, topic string) map[int]partition {
	t.Helper()
	reader := &logrange.Reader{Brokers: brokers, Topic: topic}
	_, bounds, err := reader.Bounds(t.Context())
	testenv.Must(t, err)
	found := map[int]partition{}
	for p, b := range bounds {
		var records []bus.Record
		if _, err := reader.Read(t.Context(), p, b.Start, b.End, func(r bus.Record) { records = append(records, r.Detached()) }); err != nil {
			t.Fatal(err)
		}
		found[p] = partition{b, records}
	}
	return found
}

func TestMain(m *testing.M) { os.Exit(bustest.Main(m)) }
