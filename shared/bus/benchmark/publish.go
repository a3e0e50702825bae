package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	watermillkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/measure"
)

// A load is messages of so many bytes from so many callers at once.
type load struct {
	size, callers int
	messages      int // in a call
}

// loads are single messages, many callers with one each, few with
// batches, and large messages.
var loads = []load{{1 << 10, 1, 1}, {1 << 10, 256, 1}, {1 << 10, 4, 100}, {48 << 10, 64, 1}}

func (l load) String() string {
	return fmt.Sprintf("%d bytes, %d callers, %d messages a call", l.size, l.callers, l.messages)
}

// waits reports whether all clients mostly wait for the broker's answers or disk.
func (l load) waits() bool { return l.callers == 1 || l.size > 10<<10 }

func (l load) topic() contract.Topic {
	return contract.Topic{Name: fmt.Sprintf("test.bench.%d.%d.%d", l.size, l.callers, l.messages), Partitions: partitions,
		Config: map[string]string{"retention.bytes": "100000000", "segment.bytes": "20000000"}}
}

// A client writes messages with the same value, one for each key, and
// returns once all replicas have them.
type client struct {
	send  func(ctx context.Context, topic string, keys []string, value []byte) error
	close func()
}

// clients are those that are compared. Beside the bus and franz-go none is
// idempotent.
var clients = []struct {
	name string
	open func(brokers []string) (client, error)
}{{"bus", openBus}, {"franz-go", openFranz}, {"kafka-go Writer", openWriter}, {"watermill-kafka", openWatermill}}

// measure measures each client in turn, round by round, of which the first
// warms the broker up, and prints and returns the medians.
func (l load) measure(table measure.Table, brokers []string, span time.Duration, rounds int) map[string]result {
	results := map[string][]result{}
	for round := range rounds + 1 {
		for i := range clients {
			c := clients[(i+round)%len(clients)]
			r, err := l.publish(c.open, brokers, span)
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", c.name, err)
			} else if round > 0 {
				results[c.name] = append(results[c.name], r)
			}
		}
	}
	medians := map[string]result{}
	for _, c := range clients {
		if all := results[c.name]; len(all) > 0 {
			medians[c.name] = median(all)
			medians[c.name].row(table, c.name, l.size)
		}
	}
	return medians
}

// publish publishes by a client for a while.
func (l load) publish(open func([]string) (client, error), brokers []string, span time.Duration) (found result, err error) {
	c, err := open(brokers)
	if err != nil {
		return found, err
	}
	defer c.close()
	value, topic := payload(l.size), l.topic().Name
	var sent atomic.Int64
	run := func(span time.Duration, took *measure.Samples) error {
		_, err := measure.Load{Workers: l.callers, For: span}.Run(context.Background(), func(ctx context.Context, caller int, _ time.Time) error {
			keys, first := make([]string, l.messages), int(sent.Load())
			for i := range keys {
				keys[i] = fmt.Sprintf("key-%d-%d", caller, (first+i)%26)
			}
			err := took.Time(func() error { return c.send(ctx, topic, keys, value) })
			sent.Add(int64(l.messages))
			return err
		})
		return err
	}
	if err := run(span/4, &measure.Samples{}); err != nil { // warm up
		return found, err
	}
	sent.Store(0)
	var took measure.Samples
	found, err = used(l.size, func() (int64, error) {
		err := run(span, &took)
		return sent.Load(), err
	})
	p := took.Percentiles(50, 99)
	found[p50], found[p99] = float64(p[0]), float64(p[1])
	return found, err
}

func payload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

const id = "3c9d2f7e-8a41-4b57-9c11-0f6f2b6f7d10"

// each returns a message for each key.
func each[T any](keys []string, make func(key string) T) []T {
	all := []T{}
	for _, key := range keys {
		all = append(all, make(key))
	}
	return all
}

func keyed(value []byte, name string) func(key string) *message.Message {
	return func(key string) *message.Message {
		m := message.NewMessage(id, value)
		m.Metadata[name] = key
		return m
	}
}

func openBus(brokers []string) (client, error) {
	p, err := publisher.New(publisher.Config{Brokers: brokers}, slog.New(slog.DiscardHandler))
	return client{
		send: func(ctx context.Context, topic string, keys []string, value []byte) error {
			_, err := p.PublishContext(ctx, topic, each(keys, keyed(value, bus.KeyMetadata))...)
			return err
		},
		close: func() { p.Close() },
	}, err
}

func openFranz(brokers []string) (client, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(1_000_000))
	return client{
		send: func(ctx context.Context, topic string, keys []string, value []byte) error {
			return c.ProduceSync(ctx, each(keys, func(key string) *kgo.Record {
				return &kgo.Record{Topic: topic, Key: []byte(key), Value: value, Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte(id)}}}
			})...).FirstErr()
		},
		close: c.Close,
	}, err
}

func openWriter(brokers []string) (client, error) {
	w := &kafkago.Writer{Addr: kafkago.TCP(brokers...), RequiredAcks: kafkago.RequireAll, Balancer: kafkago.Murmur2Balancer{}, BatchTimeout: time.Millisecond, BatchBytes: 1_000_000}
	return client{
		send: func(ctx context.Context, topic string, keys []string, value []byte) error {
			return w.WriteMessages(ctx, each(keys, func(key string) kafkago.Message {
				return kafkago.Message{Topic: topic, Key: []byte(key), Value: value, Headers: []kafkago.Header{{Key: "ce_id", Value: []byte(id)}}}
			})...)
		},
		close: func() { w.Close() },
	}, nil
}

// openWatermill opens watermill-kafka, which waits for each message of a call.
func openWatermill(brokers []string) (client, error) {
	settings := watermillkafka.DefaultSaramaSyncPublisherConfig()
	settings.Producer.RequiredAcks = sarama.WaitForAll
	p, err := watermillkafka.NewPublisher(watermillkafka.PublisherConfig{
		Brokers: brokers, OverwriteSaramaConfig: settings,
		Marshaler: watermillkafka.NewWithPartitioningMarshaler(func(_ string, m *message.Message) (string, error) { return m.Metadata["key"], nil }),
	}, watermill.NopLogger{})
	return client{
		send: func(_ context.Context, topic string, keys []string, value []byte) error {
			return p.Publish(topic, each(keys, keyed(value, "key"))...)
		},
		close: func() { p.Close() },
	}, err
}
