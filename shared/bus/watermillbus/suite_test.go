package watermillbus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/watermillbus"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// byPayload gives each message a key, so that equal payloads keep their order.
type byPayload struct{ *publisher.Publisher }

func (p byPayload) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		m.Metadata[bus.KeyMetadata] = string(m.Payload)
	}
	return p.Publisher.Publish(topic, messages...)
}

// suitePartitions is how many a topic of the suite has: more than one,
// so that only keys give order. The suite creates hundreds of topics,
// and a broker on a busy machine takes seconds for each partition.
const suitePartitions = 3

// pair returns a publisher and a subscriber for Watermill's suite.
func pair(t *testing.T, brokers []string, group string, keyed bool) (message.Publisher, message.Subscriber) {
	t.Helper()
	p, err := publisher.New(publisher.Config{Brokers: brokers}, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := watermillbus.NewSubscriber(watermillbus.SubscriberConfig{
		Brokers: brokers, Group: group, Partitions: suitePartitions, NackPause: 10 * time.Millisecond, HeartbeatInterval: 100 * time.Millisecond,
		SessionTimeout: 6 * time.Second, RebalanceTimeout: 3 * time.Second, JoinBackoff: 100 * time.Millisecond, CommitInterval: 50 * time.Millisecond,
	}, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the suite forgets some
		p.Close()
		s.Close()
	})
	if keyed {
		return byPayload{p}, s
	}
	return p, s
}

func features(f tests.Features) tests.Features {
	f.Persistent = true
	f.GenerateTopicFunc = func(c tests.TestContext) string { return "test.suite." + string(c.TestID) }
	return f
}

// TestSuite runs Watermill's universal suite in its three shapes in
// turn: its tests give their subscribers 45 seconds. Each test has its
// own group: joining or leaving stops a whole group for a moment, and
// TestNoAck waits five seconds.
func TestSuite(t *testing.T) {
	t.Parallel()
	t.Run("unordered", suiteUnordered)
	t.Run("ordered", suiteOrdered)
	t.Run("without a group", suiteWithoutGroup)
}

// The suite unordered: one group, any partition. The ordered one runs
// its tests of order and of a single message in flight; the one without
// a group that of old messages; TestSuiteReconnect runs Reconnect.
func suiteUnordered(t *testing.T) {
	brokers := kafkatest.Shared(t)
	inGroup := func(t *testing.T, group string) (message.Publisher, message.Subscriber) {
		return pair(t, brokers, "test."+group, false)
	}
	tests.TestPubSub(t, features(tests.Features{ConsumerGroups: true}), func(t *testing.T) (message.Publisher, message.Subscriber) {
		return inGroup(t, t.Name())
	}, inGroup)
}

// The suite with keys: messages of one key come in order, one at a time.
func suiteOrdered(t *testing.T) {
	brokers := kafkatest.Shared(t)
	inGroup := func(t *testing.T, group string) (message.Publisher, message.Subscriber) {
		return pair(t, brokers, "test."+group, true)
	}
	tests.TestPubSub(t, features(tests.Features{ConsumerGroups: true, GuaranteedOrder: true}), func(t *testing.T) (message.Publisher, message.Subscriber) {
		return inGroup(t, t.Name())
	}, inGroup)
}

// The suite without a group: each subscription gets everything from the
// beginning, in the order of the keys. It runs all tests but
// ConsumerGroups, as there is none, and Reconnect, which TestReconnect
// and TestSuiteReconnect run in this shape too.
func suiteWithoutGroup(t *testing.T) {
	brokers := kafkatest.Shared(t)
	alone := func(t *testing.T) (message.Publisher, message.Subscriber) { return pair(t, brokers, "", true) }
	tests.TestPubSub(t, features(tests.Features{GuaranteedOrder: true, NewSubscriberReceivesOldMessages: true}), alone, nil)
}

// A message knows the record that it came from.
func TestSubscriberOrigin(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.origin"
	bustest.Ensure(t, brokers, topic, 1, nil)
	p, s := pair(t, brokers, "", false)
	defer p.Close()
	defer s.Close()
	m := message.NewMessage("one", []byte("x"))
	m.Metadata["name"] = strings.Repeat("v", 3)
	if err := p.Publish(topic, m); err != nil {
		t.Fatal(err)
	}
	messages, err := s.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	got := <-messages
	defer got.Ack()
	if origin := watermillbus.OriginOf(got); origin.Topic != topic || origin.Offset != 0 || origin.Partition != 0 || origin.Time.IsZero() {
		t.Errorf("origin is %+v", origin)
	}
	if got.UUID != "one" || got.Metadata["name"] != "vvv" || string(got.Payload) != "x" {
		t.Errorf("message is %+v", got)
	}
}

// After a rebalance that keeps a partition, no second message of it is
// handed out: the one that a handler has does not come again, and the
// next waits for its acknowledgement.
func TestSubscriberKeepsItsMessage(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.underway"
	bustest.Ensure(t, brokers, topic, 2, nil)
	p, s := pair(t, brokers, "test.underway", true)
	publishOne(t, p, topic, "first", "a")
	publishOne(t, p, topic, "second", "a")
	messages := subscribed(t, s, topic)
	first := await(t, messages)
	if first.UUID != "first" {
		t.Fatalf("got %s", first.UUID)
	}
	for i := range 3 {
		rebalance(t, brokers, "test.underway", fmt.Sprint(topic, ".", i))
		other := fmt.Sprint("other-", i)
		publishOne(t, p, topic, other, "d") // in the other partition
		for got := ""; got != other; {
			m := await(t, messages)
			if got = m.UUID; !strings.HasPrefix(got, "other-") {
				t.Fatalf("%s came while the first was under way", got)
			}
			m.Ack()
		}
	}
	first.Ack()
	for got := ""; got != "second"; {
		m := await(t, messages)
		if got = m.UUID; got == "first" {
			t.Fatal("the first came again after it was acknowledged")
		}
		m.Ack()
	}
}

// rebalance has another member join the group and waits until it works.
func rebalance(t *testing.T, brokers []string, group, topic string) {
	t.Helper()
	bustest.Ensure(t, brokers, topic, 1, nil)
	p, s := pair(t, brokers, group, true)
	publishOne(t, p, topic, topic, "a")
	await(t, subscribed(t, s, topic)).Ack()
}

func publishOne(t *testing.T, p message.Publisher, topic, id, payload string) {
	t.Helper()
	if err := p.Publish(topic, message.NewMessage(id, []byte(payload))); err != nil {
		t.Fatal(err)
	}
}

func subscribed(t *testing.T, s message.Subscriber, topic string) <-chan *message.Message {
	t.Helper()
	messages, err := s.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

func await(t *testing.T, messages <-chan *message.Message) *message.Message {
	t.Helper()
	select {
	case m := <-messages:
		return m
	case <-time.After(bustest.Timeout):
		t.Fatal("no message came")
		return nil
	}
}
