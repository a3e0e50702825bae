package deferred

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/batch"
)

// An answer that compresses well is not unpacked beyond a turn's limit.
func TestAnAnswerIsNotUnpackedBeyondItsBound(t *testing.T) {
	const batches, size = 20, 10_000
	var set []byte
	for i := range batches {
		one := batch.New(time.Time{}, size)
		one.Add(batch.NewOutgoing(message.NewMessage("", make([]byte, size)), nil), 0)
		one.Seal(batch.Identity{}, 0, nil)
		binary.BigEndian.PutUint64(one.Buffer[4:], uint64(i))
		set = append(set, one.Buffer[4:]...)
	}
	l := &Reader{lanes: lanes.Config{Of: func(bus.Record) string { return "other" }}.WithDefaults(), decoder: batch.NewDecoder("t")}
	for _, c := range []struct{ most, next int }{{1, 1}, {5 * size, 5}, {batches * 2 * size, batches}} {
		s := &lanes.Batch{Request: lanes.Request{Key: lanes.Key{Lane: "a"}, Last: batches, Limit: lanes.Amount{Records: 100, Cost: 1 << 20, Bytes: 1 << 20}}}
		scanned, full, err := l.unpack(s, set, c.most)
		if err != nil || full || s.Next != int64(c.next) || scanned < min(c.most, batches*size) {
			t.Errorf("at most %d bytes: unpacked %d up to offset %d, want %d; full %v, error %v", c.most, scanned, s.Next, c.next, full, err)
		}
	}
}
