package resume

import (
	"errors"
	"testing"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// Ingest publishes without a lease: only its groups show that a process runs.
func TestAlone(t *testing.T) {
	i, steps := &installation{brokers: kafkatest.Brokers(t)}, []Step{{Outcomes: []Outcome{{Position: Position{Group: contract.GroupLogStore}}}}}
	if err := i.alone(t.Context(), steps); err != nil {
		t.Errorf("nobody runs: %v", err)
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{ID: contract.GroupLogStore, Brokers: i.brokers, Topics: []string{contract.TopicLogs}})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	if _, err := group.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.alone(t.Context(), steps); !errors.Is(err, errConsuming) {
		t.Errorf("a process runs: %v", err)
	}
}
