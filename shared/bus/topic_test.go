package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/weirlog/weir/shared/testenv"
)

// replaceTopic deletes a topic and makes another one of its name.
func replaceTopic(t *testing.T, brokers []string, topic string, partitions int, config map[string]string) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: patience}
	answer, err := client.DeleteTopics(context.Background(), &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err == nil {
		err = answer.Errors[topic]
	}
	if err != nil {
		t.Fatal(err)
	}
	transport := &kafka.Transport{MetadataTTL: 10 * time.Millisecond} // else it says for six seconds what it knew
	defer transport.CloseIdleConnections()
	client.Transport = transport
	testenv.Eventually(t, patience, func() error {
		seen, err := client.Metadata(context.Background(), &kafka.MetadataRequest{Topics: []string{topic}})
		if err == nil && !errors.Is(seen.Topics[0].Error, kafka.UnknownTopicOrPartition) {
			err = errors.New("the topic is still there")
		}
		return err
	})
	ensure(t, brokers, topic, partitions, config)
}

// ids are the ids of a topic's records, in the order of the log.
func ids(t testing.TB, brokers []string, topic string) (found []string) {
	t.Helper()
	for _, r := range readAll(t, brokers, topic) {
		found = append(found, r.Header("ce_id"))
	}
	return found
}

// quiet is a logger of nothing.
type quiet struct{}

func (quiet) Logf(kfake.LogLevel, string, ...any) {}
