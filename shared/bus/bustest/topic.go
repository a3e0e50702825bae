package bustest

import (
	"context"
	"errors"
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
	transport := &kafka.Transport{MetadataTTL: 10 * time.Millisecond} // else it answers from its cache for six seconds
	defer transport.CloseIdleConnections()
	client.Transport = transport
	testenv.Eventually(t, Timeout, func() error {
		seen, err := client.Metadata(context.Background(), &kafka.MetadataRequest{Topics: []string{topic}})
		if err == nil && !errors.Is(seen.Topics[0].Error, kafka.UnknownTopicOrPartition) {
			err = errors.New("the topic is still there")
		}
		return err
	})
	Ensure(t, brokers, topic, partitions, config)
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
