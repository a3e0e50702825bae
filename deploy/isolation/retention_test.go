package isolation

import (
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// An agingBroker is a broker whose clock the test moves.
type agingBroker struct {
	*kafka.Broker

	ahead atomic.Int64
}

// startAging starts one on a directory; nil if the tests are given a
// broker, which uses the machine's clock.
func startAging(t *testing.T) *agingBroker {
	t.Helper()
	if os.Getenv(testenv.EnvBrokers) != "" {
		return nil
	}
	b := &agingBroker{}
	b.ahead.Store(int64(24 * time.Hour))
	var err error
	b.Broker, err = kafka.Start(kafka.Config{
		Dir: t.TempDir(), Open: true, Logger: slog.New(slog.DiscardHandler), SegmentBytes: 4 << 10,
		Clock: func() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) },
	})
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

// addresses are those of the broker, or of the given one.
func (b *agingBroker) addresses(t *testing.T) []string {
	t.Helper()
	if b == nil {
		return kafkatest.Brokers(t)
	}
	return []string{b.Addr()}
}

// expire lets the retention of all topics pass.
func (b *agingBroker) expire(t *testing.T) {
	t.Helper()
	must(t, b.Retain(t.Context())) // what is young gets its age
	b.ahead.Add(int64(100 * 24 * time.Hour))
	must(t, b.Retain(t.Context()))
	must(t, b.Compact(t.Context()))
}

// isForgottenOnTopics looks for the mark in all topics after their
// retention and compaction.
func (w *world) isForgottenOnTopics(t *testing.T, broker *agingBroker) {
	t.Helper()
	before := w.topics(t)
	if broker == nil { // its time can't pass: what compaction and retention leave is worked out
		for _, topic := range contract.Topics(1, time.Hour) {
			before["topic "+topic.Name] = w.retained(t, topic)
		}
		isUnmarked(t, before)
		return
	}
	broker.expire(t)
	after := w.topics(t)
	isUnmarked(t, after)
	for _, place := range []string{"topic " + contract.TopicLogs, "topic " + contract.TopicGrouping} {
		if before[place] == "" || after[place] != "" {
			t.Errorf("%s held %d bytes, and %d once its time was over", place, len(before[place]), len(after[place]))
		}
	}
}
