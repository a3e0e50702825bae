package doctor

import (
	"testing"
	"time"

	segmentio "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// Only one waiting record is read, however many there are; only a
// compacted topic may need more to find one.
func TestOldestReadsNoMoreThanItNeeds(t *testing.T) {
	first := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	second := first.Add(-time.Hour) // shows that it was read
	brokers := kafkatest.Brokers(t)
	wanted := map[string]time.Time{"delete": first, "compact": second}
	for policy := range wanted { // before the client caches the topics
		bustest.Ensure(t, brokers, "test.oldest."+policy, 1, map[string]string{"cleanup.policy": policy})
	}
	for policy, want := range wanted {
		name := "test.oldest." + policy
		answer, err := (&segmentio.Client{Addr: segmentio.TCP(brokers...)}).Produce(t.Context(), &segmentio.ProduceRequest{
			Topic: name, RequiredAcks: segmentio.RequireAll, Records: segmentio.NewRecordReader(
				segmentio.Record{Time: first, Key: segmentio.NewBytes([]byte("a")), Value: segmentio.NewBytes([]byte("1"))},
				segmentio.Record{Time: second, Key: segmentio.NewBytes([]byte("b")), Value: segmentio.NewBytes([]byte("2"))},
			),
		})
		must(t, err)
		must(t, answer.Error)
		seen, err := cluster.Look(t.Context(), brokers, nil, []string{name}, topicSettings)
		must(t, err)
		e := &examination{brokers: brokers}
		oldest, err := e.oldest(t.Context(), seen.Topics[name], []position{{Topic: name}})
		if err != nil || !oldest.Equal(want) {
			t.Errorf("%s: oldest %v, %v, want %v", policy, oldest, err, want)
		}
	}
}
