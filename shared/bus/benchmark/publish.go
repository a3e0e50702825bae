package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	watermillkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
)

var inFlight int

func openBus(brokers []string) (client, error) {
	p, err := publisher.New(publisher.Config{Brokers: brokers, InFlight: inFlight}, slog.New(slog.DiscardHandler))
	if err != nil {
		return client{}, err
	}
	return client{
		name: "bus", settings: "defaults, idempotent",
		send: func(ctx context.Context, topic, key string, value []byte) error {
			m := message.NewMessage("3c9d2f7e-8a41-4b57-9c11-0f6f2b6f7d10", value)
			m.Metadata[bus.KeyMetadata] = key
			_, err := p.PublishContext(ctx, topic, m)
			return err
		},
		batch: func(topic string, value []byte) error { return p.Publish(topic, batchOf(value, bus.KeyMetadata)...) },
		close: func() { p.Close() },
	}, nil
}

func openFranz(brokers []string) (client, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(1_000_000))
	if err != nil {
		return client{}, err
	}
	return client{
		name: "franz-go", settings: "idempotent, linger 0",
		send: func(ctx context.Context, topic, key string, value []byte) error {
			return c.ProduceSync(ctx, &kgo.Record{Topic: topic, Key: []byte(key), Value: value,
				Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("3c9d2f7e-8a41-4b57-9c11-0f6f2b6f7d10")}}}).FirstErr()
		},
		batch: func(topic string, value []byte) error {
			records := make([]*kgo.Record, 100)
			for i := range records {
				records[i] = &kgo.Record{Topic: topic, Key: []byte{byte('a' + i%26)}, Value: value,
					Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("3c9d2f7e-8a41-4b57-9c11-0f6f2b6f7d10")}}}
			}
			return c.ProduceSync(context.Background(), records...).FirstErr()
		},
		close: c.Close,
	}, nil
}

func openWriter(brokers []string) (client, error) {
	w := &kafkago.Writer{Addr: kafkago.TCP(brokers...), RequiredAcks: kafkago.RequireAll, Balancer: kafkago.Murmur2Balancer{}, BatchTimeout: time.Millisecond, BatchBytes: 1_000_000}
	return client{
		name: "kafka-go Writer", settings: "not idempotent, BatchTimeout 1 ms",
		send: func(ctx context.Context, topic, key string, value []byte) error {
			return w.WriteMessages(ctx, kafkago.Message{Topic: topic, Key: []byte(key), Value: value,
				Headers: []kafkago.Header{{Key: "ce_id", Value: []byte("3c9d2f7e-8a41-4b57-9c11-0f6f2b6f7d10")}}})
		},
		batch: func(topic string, value []byte) error {
			messages := make([]kafkago.Message, 100)
			for i := range messages {
				messages[i] = kafkago.Message{Topic: topic, Key: []byte{byte('a' + i%26)}, Value: value,
					Headers: []kafkago.Header{{Key: "ce_id", Value: []byte("3c9d2f7e-8a41-4b57-9c11-0f6f2b6f7d10")}}}
			}
			return w.WriteMessages(context.Background(), messages...)
		},
		close: func() { w.Close() },
	}, nil
}

func openWatermill(brokers []string) (client, error) {
	settings := watermillkafka.DefaultSaramaSyncPublisherConfig()
	settings.Producer.RequiredAcks = sarama.WaitForAll
	p, err := watermillkafka.NewPublisher(watermillkafka.PublisherConfig{
		Brokers: brokers, OverwriteSaramaConfig: settings,
		Marshaler: watermillkafka.NewWithPartitioningMarshaler(func(_ string, m *message.Message) (string, error) { return m.Metadata["key"], nil }),
	}, watermill.NopLogger{})
	if err != nil {
		return client{}, err
	}
	return client{
		name: "watermill-kafka", settings: "sarama, WaitForAll, not idempotent",
		send: func(_ context.Context, topic, key string, value []byte) error {
			m := message.NewMessage("3c9d2f7e-8a41-4b57-9c11-0f6f2b6f7d10", value)
			m.Metadata["key"] = key
			return p.Publish(topic, m)
		},
		batch: func(topic string, value []byte) error { return p.Publish(topic, batchOf(value, "key")...) },
		close: func() { p.Close() },
	}, nil
}

func saramaFromStart() *sarama.Config {
	c := watermillkafka.DefaultSaramaSubscriberConfig()
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	return c
}

// batchOf returns a hundred messages for one call, for clients that
// take several at once. watermill-kafka waits for each of them.
func batchOf(value []byte, keyName string) []*message.Message {
	messages := make([]*message.Message, 100)
	for i := range messages {
		messages[i] = message.NewMessage("3c9d2f7e-8a41-4b57-9c11-0f6f2b6f7d10", value)
		messages[i].Metadata[keyName] = string(rune('a' + i%26))
	}
	return messages
}
