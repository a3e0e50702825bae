package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"

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
