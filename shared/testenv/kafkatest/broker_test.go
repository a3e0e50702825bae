package kafkatest_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A test finds no topic of another test, and its subtests share its broker.
func TestBrokerIsEmpty(t *testing.T) {
	for range 2 {
		t.Run("round", func(t *testing.T) {
			brokers := kafkatest.Brokers(t)
			if again := kafkatest.Brokers(t); again[0] != brokers[0] {
				t.Errorf("asked again, got %v instead of %v", again, brokers)
			}
			createTopic(t, brokers, "weir.logs.v1")
		})
	}
}

// createTopic fails if the topic exists.
func createTopic(t *testing.T, brokers []string, name string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if code := resp.Topics[0].ErrorCode; code != 0 {
		t.Errorf("cannot create %s on an empty broker: code %d", name, code)
	}
}
