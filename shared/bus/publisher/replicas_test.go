package publisher_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/telemetry"
)

// Missing replicas named by brokers are shown, by topic.
func TestMissingCopiesAreShown(t *testing.T) {
	t.Parallel()
	const topic = "test.copies"
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topic), kfake.WithLogger(bustest.Quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.ControlKey(int16(kmsg.Metadata), func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return lackingCopies(request, c, topic), nil, true
	})
	registry := telemetry.New()
	p := bustest.NewPublisher(t, publisher.Config{Brokers: c.ListenAddrs(), Metrics: registry.For("test")})
	bustest.Publish(t, p, topic, 0, 1, 1)
	bustest.Shows(t, registry, `weir_bus_under_replicated_partitions{service="test",topic="test.copies"} 2`)
}

// lackingCopies is a layout in which only the last of three partitions
// has all replicas.
func lackingCopies(request kmsg.Request, c *kfake.Cluster, name string) kmsg.Response {
	response, topic := request.ResponseKind().(*kmsg.MetadataResponse), kmsg.NewMetadataResponseTopic()
	broker := kmsg.NewMetadataResponseBroker()
	broker.Host = "127.0.0.1"
	fmt.Sscanf(c.ListenAddrs()[0], "127.0.0.1:%d", &broker.Port)
	topic.Topic, topic.TopicID = &name, c.TopicInfo(name).TopicID
	for i := range int32(3) {
		partition := kmsg.NewMetadataResponseTopicPartition()
		partition.Partition, partition.Replicas, partition.ISR = i, []int32{0, 1, 2}, []int32{0, 1, 2}[:1+i]
		topic.Partitions = append(topic.Partitions, partition)
	}
	response.Brokers, response.Topics = append(response.Brokers, broker), append(response.Topics, topic)
	return response
}
