package watermillbus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/watermillbus"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A subscription whose topic is replaced while it is disconnected gets
// all of the new one, however many partitions that has: positions in the
// old topic are not used in the new one, where they would skip messages.
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
	brokers, topic := kafkatest.Shared(t), fmt.Sprintf("test.subscription.replaced.%s.%d", group, partitions)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, 100, 40)
	networks, err := kafkatest.NewNetworks(brokers)
	if err != nil {
		t.Fatal(err)
	}
	defer networks[0].Close()
	s, err := watermillbus.NewSubscriber(watermillbus.SubscriberConfig{
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
	bustest.ReplaceTopic(t, brokers, topic, partitions, nil)
	bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 1000, 500, 40)
	if err := networks[0].Heal(); err != nil {
		t.Fatal(err)
	}
	receive(t, messages, 500)
}
