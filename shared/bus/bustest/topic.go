package bustest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/weirlog/weir/shared/testenv"
)

// ReplaceTopic deletes a topic and creates another one of its name.
func ReplaceTopic(t testing.TB, brokers []string, topic string, partitions int, config map[string]string) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: Timeout}
	answer, err := client.DeleteTopics(context.Background(), &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err == nil {
		err = answer.Errors[topic]
	}
	if err != nil {
		t.Fatal(err)
	}
	awaitMetadata(t, brokers, topic, func(seen kafka.Topic) error {
		if !errors.Is(seen.Error, kafka.UnknownTopicOrPartition) {
			return errors.New("the topic is still there")
		}
		return nil
	})
	Ensure(t, brokers, topic, partitions, config)
}

// AddPartitions raises the number of partitions of a topic to n.
func AddPartitions(t testing.TB, brokers []string, topic string, n int32) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: Timeout}
	answer, err := client.CreatePartitions(context.Background(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: n}}})
	if err == nil {
		err = answer.Errors[topic]
	}
	if err != nil {
		t.Fatal(err)
	}
	// Apache Kafka answers before its metadata has them: a publisher that started now would not use them.
	awaitMetadata(t, brokers, topic, func(seen kafka.Topic) error {
		if len(seen.Partitions) < int(n) {
			return fmt.Errorf("%d partitions of %s, want %d", len(seen.Partitions), topic, n)
		}
		return nil
	})
}

func awaitMetadata(t testing.TB, brokers []string, topic string, check func(kafka.Topic) error) {
	t.Helper()
	transport := &kafka.Transport{MetadataTTL: 10 * time.Millisecond} // else it answers from its cache for six seconds
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: Timeout, Transport: transport}
	testenv.Eventually(t, Timeout, func() error {
		seen, err := client.Metadata(context.Background(), &kafka.MetadataRequest{Topics: []string{topic}})
		if err != nil {
			return err
		}
		return check(seen.Topics[0])
	})
}

// IDs returns the ids of a topic's records in the order of the log.
func IDs(t testing.TB, brokers []string, topic string) (found []string) {
	t.Helper()
	for _, r := range ReadAll(t, brokers, topic) {
		found = append(found, r.Header("ce_id"))
	}
	return found
}

// Quiet is a logger that drops everything.
type Quiet struct{}

func (Quiet) Logf(kfake.LogLevel, string, ...any) {}
