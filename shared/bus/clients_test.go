package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// What other clients write can be read, however compressed; they read
// what we write, and find keys in the same partitions.
func TestOtherClients(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Shared(t)
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		t.Run(name, func(t *testing.T) {
			topic := "test.others." + name
			bustest.Ensure(t, brokers, topic, 5, nil)
			client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(codec), kgo.ConsumeTopics(topic),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(50*time.Millisecond)) // else it sees a topic only after seconds
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			messages := bustest.Keyed(0, 200, 50)
			places := make(map[string]int32)
			for _, m := range messages {
				r := &kgo.Record{Key: []byte(m.Metadata[bus.KeyMetadata]), Value: m.Payload, Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte(m.UUID)}}}
				if err := client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
					t.Fatal(err)
				}
				places[string(r.Key)] = r.Partition
			}
			if n := len(bustest.ReadAll(t, brokers, topic)); n != 200 {
				t.Errorf("read %d records, want 200", n)
			}
			compression := publisher.Uncompressed
			if name == "zstd" {
				compression = publisher.Zstd
			}
			positions, err := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, Compression: compression}).PublishContext(context.Background(), topic, messages...)
			if err != nil {
				t.Fatal(err)
			}
			for i, at := range positions {
				if want := places[messages[i].Metadata[bus.KeyMetadata]]; int32(at.Partition) != want {
					t.Fatalf("key %q is in partition %d, the other client has it in %d", messages[i].Metadata[bus.KeyMetadata], at.Partition, want)
				}
			}
			for seen := 0; seen < 400; {
				fetches := client.PollFetches(t.Context())
				fetches.EachError(func(topic string, p int32, err error) { t.Fatal(topic, p, err) })
				fetches.EachRecord(func(*kgo.Record) { seen++ })
			}
		})
	}
}
