package bus_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/testenv"
)

// replaceTopic deletes a topic and makes another one of its name.
func replaceTopic(t *testing.T, brokers []string, topic string, partitions int, config map[string]string) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: patience}
	answer, err := client.DeleteTopics(context.Background(), &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err = errors.Join(err, answer.Errors[topic]); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, patience, func() error {
		seen, err := client.Metadata(context.Background(), &kafka.MetadataRequest{Topics: []string{topic}})
		if err == nil && !errors.Is(seen.Topics[0].Error, kafka.UnknownTopicOrPartition) {
			err = errors.New("the topic is still there")
		}
		return err
	})
	ensure(t, brokers, topic, partitions, config)
}

// A topic that is deleted and made again stops its consumer, whether it runs or not, even where the new log is longer than the old
// one was: what is in it was never applied, and its first part would be missing.
func TestConsumerOfAReplacedTopic(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running %v", running), func(t *testing.T) {
			brokers, topic, pool := testenv.Kafka(t), fmt.Sprintf("test.replaced.%v", running), database(t)
			effects(t, pool)
			ensure(t, brokers, topic, 2, nil)
			publish(t, newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 0, 100, 40)
			c, stop := startConsumer(t, quick(brokers, topic, pool, writeEffects))
			applied(t, pool, 100, patience)
			if !running {
				stop()
			}
			replaceTopic(t, brokers, topic, 2, nil)
			publish(t, newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 1000, 500, 40)
			if !running {
				c, stop = startConsumer(t, quick(brokers, topic, pool, writeEffects))
			}
			stopped := func() error {
				if err := c.Ready(); err == nil || !strings.Contains(err.Error(), bus.ErrTopicReplaced.Error()) {
					return fmt.Errorf("Ready says something else: %w", err)
				}
				return nil
			}
			testenv.Eventually(t, patience, stopped)
			applied(t, pool, 100, patience)
			stop()

			goOn := `UPDATE bus_positions SET next = 0, topic_id = NULL, halted = NULL`
			if _, err := pool.Exec(context.Background(), goOn); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(context.Background(), `TRUNCATE effects`); err != nil {
				t.Fatal(err)
			}
			startConsumer(t, quick(brokers, topic, pool, writeEffects))
			applied(t, pool, 500, patience)
		})
	}
}

// A state whose topic is replaced becomes that of the new one: what only the old one had is removed.
func TestStateReaderOfAReplacedTopic(t *testing.T) {
	brokers, topic := testenv.Kafka(t), "test.state.replaced"
	compacted := map[string]string{"cleanup.policy": "compact"}
	ensure(t, brokers, topic, 1, compacted)
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	for _, key := range []string{"both", "old", "older"} {
		if err := p.Publish(topic, put(key, []byte("old"))); err != nil {
			t.Fatal(err)
		}
	}
	s := &table{rows: make(map[string]string)}
	r := bus.NewStateReader(bus.StateConfig{Brokers: brokers, Topic: topic, Apply: s.apply}, testenv.Logger(t))
	start(t, r.Run)
	<-r.Ready()
	replaceTopic(t, brokers, topic, 1, compacted)
	p = newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	want := map[string]string{"both": "new", "1": "new", "2": "new", "3": "new"}
	for key, value := range want {
		if err := p.Publish(topic, put(key, []byte(value))); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, patience, func() error {
		if got := s.copy(); !maps.Equal(got, want) {
			return fmt.Errorf("state is %v, want %v", got, want)
		}
		return nil
	})
}
