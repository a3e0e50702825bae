package bus_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/fault"
)

// A topic that is deleted and made again stops its consumer, whether it runs or not, even where the new log is longer than the old
// one was: what is in it was never applied, and its first part would be missing.
func TestConsumerOfAReplacedTopic(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running %v", running), func(t *testing.T) {
			brokers, topic, pool := testenv.SharedKafka(t), fmt.Sprintf("test.replaced.%v", running), database(t)
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

// A state whose topic is replaced becomes that of the new one: what only the old one had is removed, and nothing is awaited of a
// partition that only the old one had.
func TestStateReaderOfAReplacedTopic(t *testing.T) {
	t.Parallel()
	brokers, topic := testenv.SharedKafka(t), "test.state.replaced"
	compacted := map[string]string{"cleanup.policy": "compact"}
	ensure(t, brokers, topic, 2, compacted)
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	for _, key := range []string{"both", "old", "older"} {
		if err := p.Publish(topic, put(key, []byte("old"))); err != nil {
			t.Fatal(err)
		}
	}
	var clock shifted
	s := &table{rows: make(map[string]string)}
	r := bus.NewStateReader(bus.StateConfig{Brokers: brokers, Topic: topic, Apply: s.apply, Clock: clock.now}, testenv.Logger(t))
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
	clock.ahead.Add(int64(time.Hour)) // so that a partition of which nothing is heard any more shows
	testenv.Eventually(t, patience, func() error {
		if got := s.copy(); !maps.Equal(got, want) {
			return fmt.Errorf("state is %v, want %v", got, want)
		}
		if age := r.Age(); age > 30*time.Minute {
			return fmt.Errorf("age is %v", age)
		}
		return nil
	})
}

// A subscription whose topic is replaced while it sees nothing gets all of the new one, whether that has more partitions or not: no place
// in the topic before is taken for one in the new, where messages would be missing before it.
func TestSubscriberOfAReplacedTopic(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"", "test.replaced"} {
		for _, partitions := range []int{1, 2} {
			t.Run(fmt.Sprintf("group %q, %d partitions", group, partitions), func(t *testing.T) {
				subscribeToAReplacedTopic(t, group, partitions)
			})
		}
	}
}

func subscribeToAReplacedTopic(t *testing.T, group string, partitions int) {
	brokers, topic := testenv.SharedKafka(t), fmt.Sprintf("test.subscription.replaced.%s.%d", group, partitions)
	ensure(t, brokers, topic, 1, nil)
	publish(t, newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 0, 100, 40)
	networks, err := fault.NewKafkaNetworks(brokers)
	if err != nil {
		t.Fatal(err)
	}
	defer networks[0].Close()
	s, err := bus.NewSubscriber(bus.SubscriberConfig{
		Brokers: []string{networks[0].Address()}, Group: group, HeartbeatInterval: 100 * time.Millisecond, SessionTimeout: 2 * time.Second,
		JoinBackoff: 100 * time.Millisecond, CommitInterval: 50 * time.Millisecond, PartitionWatch: time.Millisecond,
	}, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	messages := subscribed(t, s, topic)
	receive(t, messages, 100)
	networks[0].Cut()
	replaceTopic(t, brokers, topic, partitions, nil)
	publish(t, newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 1000, 500, 40)
	if err := networks[0].Heal(); err != nil {
		t.Fatal(err)
	}
	receive(t, messages, 500)
}
