package consumer_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
)

// pairOfBrokers leads partition 0 of a topic with one broker, partition
// 1 with the other, and can act as if partition 1 had no leader.
type pairOfBrokers struct {
	*kfake.Cluster
	topic string
	id    [16]byte
	led   atomic.Bool
}

func newPairOfBrokers(t *testing.T, topic string) *pairOfBrokers {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(2, topic), kfake.WithLogger(bustest.Quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for p := range int32(2) {
		if err := c.MoveTopicPartition(topic, p, p); err != nil {
			t.Fatal(err)
		}
	}
	b := &pairOfBrokers{Cluster: c, topic: topic, id: c.TopicInfo(topic).TopicID}
	b.led.Store(true)
	b.intercept(kmsg.Metadata, b.layout)
	b.intercept(kmsg.Fetch, b.nothingFetched)
	b.intercept(kmsg.ListOffsets, b.nothingListed)
	return b
}

// intercept changes answers while partition 1 is without a leader.
func (b *pairOfBrokers) intercept(key kmsg.Key, answer func(kmsg.Request) kmsg.Response) {
	b.ControlKey(int16(key), func(request kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		if b.led.Load() {
			return nil, nil, false
		}
		response := answer(request)
		return response, nil, response != nil
	})
}

func (b *pairOfBrokers) layout(request kmsg.Request) kmsg.Response {
	response := request.ResponseKind().(*kmsg.MetadataResponse)
	for i, address := range b.ListenAddrs() {
		broker := kmsg.NewMetadataResponseBroker()
		broker.NodeID = int32(i)
		fmt.Sscanf(address, "127.0.0.1:%d", &broker.Port)
		broker.Host = "127.0.0.1"
		response.Brokers = append(response.Brokers, broker)
	}
	topic := kmsg.NewMetadataResponseTopic()
	topic.Topic, topic.TopicID = &b.topic, b.id
	for p, leader := range []int32{0, -1} {
		partition := kmsg.NewMetadataResponseTopicPartition()
		partition.Partition, partition.Leader = int32(p), leader
		topic.Partitions = append(topic.Partitions, partition)
	}
	response.Topics = append(response.Topics, topic)
	return response
}

func (b *pairOfBrokers) nothingFetched(request kmsg.Request) kmsg.Response {
	if b.CurrentNode() == 0 {
		return nil
	}
	response := request.ResponseKind().(*kmsg.FetchResponse)
	topic := kmsg.NewFetchResponseTopic()
	topic.TopicID = b.id
	partition := kmsg.NewFetchResponseTopicPartition()
	partition.Partition, partition.ErrorCode = 1, kerr.NotLeaderForPartition.Code
	topic.Partitions = append(topic.Partitions, partition)
	response.Topics = append(response.Topics, topic)
	return response
}

func (b *pairOfBrokers) nothingListed(request kmsg.Request) kmsg.Response {
	if b.CurrentNode() == 0 {
		return nil
	}
	response := request.ResponseKind().(*kmsg.ListOffsetsResponse)
	topic := kmsg.NewListOffsetsResponseTopic()
	topic.Topic = b.topic
	partition := kmsg.NewListOffsetsResponseTopicPartition()
	partition.Partition, partition.ErrorCode = 1, kerr.NotLeaderForPartition.Code
	topic.Partitions = append(topic.Partitions, partition)
	response.Topics = append(response.Topics, topic)
	return response
}

// While a partition has no leader, a consumer continues with the
// others, whether it had that one or not. Once it is led again, no
// record of it is missing.
func TestPartitionWithoutALeader(t *testing.T) {
	t.Parallel()
	const topic = "test.leaderless"
	b := newPairOfBrokers(t, topic)
	brokers := b.ListenAddrs()
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	to := func(partition, n int) {
		t.Helper()
		var messages []*message.Message
		for i := range n {
			m := message.NewMessage(fmt.Sprint(i), nil)
			m.Metadata[bus.KeyMetadata] = []string{"key-1", "key-0"}[partition]
			messages = append(messages, m)
		}
		at, err := p.PublishContext(t.Context(), topic, messages...)
		if err != nil || at[0].Partition != partition {
			t.Fatalf("published to %v, want partition %d (%v)", at[0], partition, err)
		}
	}
	to(0, 10)
	to(1, 10)
	before := bustest.Database(t)
	bustest.Effects(t, before)
	bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, before, bustest.WriteEffects))
	bustest.Applied(t, before, 20, bustest.Timeout)
	to(1, 5)
	bustest.Applied(t, before, 25, bustest.Timeout)

	b.led.Store(false)
	to(0, 7)
	bustest.Applied(t, before, 32, bustest.Timeout)
	after := bustest.Database(t)
	bustest.Effects(t, after)
	fresh := bustest.QuickConsumer(brokers, topic, after, bustest.WriteEffects)
	fresh.Group = "test.fresh"
	c, _ := bustest.StartConsumer(t, fresh)
	bustest.Applied(t, after, 17, bustest.Timeout)
	if err := c.Ready(); err == nil {
		t.Error("ready although a partition was never read")
	}

	b.led.Store(true)
	to(1, 3)
	bustest.Applied(t, before, 35, bustest.Timeout)
	bustest.Applied(t, after, 35, bustest.Timeout)
}
