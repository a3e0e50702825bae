package doctor

import (
	"context"
	"fmt"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
)

// A readTopic is how far a module has read a topic into its memory.
type readTopic struct {
	Topic      string
	Partition  int
	TopicID    [16]byte
	LastOffset int64
	LastSum    int64
}

// topicsRead checks that topics have the last records that a module has
// read into its memory.
func (e *examination) topicsRead(ctx context.Context, o opened) {
	read, _ := readRows[readTopic](ctx, e, o, "read", `SELECT topic, partition, topic_id, last_offset, last_sum FROM bus_read ORDER BY 1, 2`)
	for _, r := range read {
		topic, seen := e.seen.Topics[r.Topic]
		if !seen || topic.Err != nil {
			continue
		}
		const fix = "A start of this service answers 500 until tenants has published again what is missing: start tenants, and find out which broker lost data."
		subject := o.name + " of " + r.Topic
		has := e.look(ctx, "read", subject, fix, func(ctx context.Context) error { return e.hasRead(ctx, r, topic.ID) })
		if has {
			e.report.add(OK, "read", subject, "the log has what was read last", "")
		}
	}
}

// hasRead returns why a topic lacks the last record that was read of it.
func (e *examination) hasRead(ctx context.Context, r readTopic, now [16]byte) error {
	if r.TopicID != now {
		return fmt.Errorf("partition %d was read up to %d of another topic of that name", r.Partition, r.LastOffset)
	}
	reader := &logrange.Reader{Brokers: e.brokers, Dialer: e.dialer, Topic: r.Topic}
	kept, err := reader.Keeps(ctx, r.Partition, bus.Mark{Offset: r.LastOffset, Sum: uint32(r.LastSum)}) //nolint:gosec // it was one
	if err == nil && !kept {
		err = fmt.Errorf("partition %d has another record at %d than was read: it has lost its end, and has grown since", r.Partition, r.LastOffset)
	}
	return err
}
