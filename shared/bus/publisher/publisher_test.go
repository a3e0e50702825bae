package publisher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// Published messages are in the log at the positions that
// PublishContext returned, with their key, headers and bytes.
func TestPublishReturnsPositions(t *testing.T) {
	t.Parallel()
	for _, compression := range []publisher.Compression{publisher.Uncompressed, publisher.Zstd, publisher.ZstdSmall} {
		t.Run(string(compression), func(t *testing.T) {
			brokers, topic := kafkatest.Shared(t), "test.positions."+string(compression)
			bustest.Ensure(t, brokers, topic, 4, nil)
			p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, Compression: compression})
			messages := bustest.Keyed(0, 500, 37)
			messages[3].Payload = nil
			messages[4].Payload = []byte{}
			messages[5].Metadata["zebra"], messages[5].Metadata["ant"] = "z", "a"
			positions, err := p.PublishContext(context.Background(), topic, messages...)
			testenv.Must(t, err)
			at := make(map[bus.Position]bus.Record)
			for _, r := range bustest.ReadAll(t, brokers, topic) {
				at[bus.Position{Partition: r.Partition, Offset: r.Offset}] = r
			}
			if len(at) != 500 {
				t.Fatalf("log holds %d records, want 500", len(at))
			}
			for i, m := range messages {
				r := at[positions[i]]
				if !bytes.Equal(r.Value, m.Payload) || (r.Value == nil) != (m.Payload == nil) || string(r.Key) != m.Metadata[bus.KeyMetadata] || r.Header("ce_id") != m.UUID {
					t.Fatalf("message %d is %+v at %v", i, r, positions[i])
				}
			}
			if h := at[positions[5]].Headers; len(h) != 3 || h[0].Key != "ant" || h[1].Key != "ce_id" || h[2].Key != "zebra" {
				t.Errorf("headers are %v, want ant, ce_id, zebra", h)
			}
		})
	}
}

// Concurrent callers lose nothing, write nothing twice, and keep the
// order of each key.
func TestPublishConcurrently(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.concurrent"
	bustest.Ensure(t, brokers, topic, 6, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, BufferBytes: 256 << 10})
	const callers, each = 32, 200
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				m := message.NewMessage(fmt.Sprintf("%d-%d", c, i), bytes.Repeat([]byte("x"), 1000))
				m.Metadata[bus.KeyMetadata] = fmt.Sprint(c)
				if err := p.Publish(topic, m); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	next := make(map[string]int)
	for _, r := range bustest.ReadAll(t, brokers, topic) {
		c := string(r.Key)
		if want := fmt.Sprintf("%s-%d", c, next[c]); r.Header("ce_id") != want {
			t.Fatalf("found %s where %s belongs", r.Header("ce_id"), want)
		}
		next[c]++
	}
	for c := range callers {
		if next[fmt.Sprint(c)] != each {
			t.Errorf("caller %d has %d records, want %d", c, next[fmt.Sprint(c)], each)
		}
	}
}

// A message that can never be written is refused at once, with a certain error.
func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Shared(t)
	bustest.Ensure(t, brokers, "test.refuse", 1, map[string]string{"max.message.bytes": "2000000"})
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	hasty := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, RequestTimeout: time.Second})
	for name, c := range map[string]struct {
		by    *publisher.Publisher
		topic string
		bytes int
		want  error
	}{
		"larger than the publisher's limit": {p, "test.refuse", 3 << 20, bus.ErrTooLarge},
		"larger than the broker's limit":    {p, "test.refuse", 2_050_000, bus.ErrTooLarge},
		"topic that nobody made":            {hasty, "test.nobody", 10, bus.ErrUnknownTopic},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.by.Publish(c.topic, message.NewMessage("id", make([]byte, c.bytes)))
			if !errors.Is(err, c.want) || errors.Is(err, bus.ErrUnknownOutcome) {
				t.Errorf("error is %v, want %v", err, c.want)
			}
		})
	}
	if err := p.Publish("test.refuse", message.NewMessage("id", make([]byte, 1_500_000))); err != nil {
		t.Errorf("a message larger than a batch but within the limits fails: %v", err)
	}
}

// A closed publisher refuses messages, and Close writes all accepted ones.
func TestCloseDelivers(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.close"
	bustest.Ensure(t, brokers, topic, 3, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	var wg sync.WaitGroup
	var mu sync.Mutex
	written := make(map[string]bool)
	for c := range 50 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d", c, i)
				err := p.Publish(topic, message.NewMessage(id, nil))
				if errors.Is(err, bus.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				written[id] = true
				mu.Unlock()
			}
		})
	}
	testenv.Eventually(t, func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(written) < 100 {
			return errors.New("not enough yet")
		}
		return nil
	})
	testenv.Must(t, p.Close())
	wg.Wait()
	for _, r := range bustest.ReadAll(t, brokers, topic) {
		delete(written, r.Header("ce_id"))
	}
	if len(written) > 0 {
		t.Errorf("%d messages were reported written and are not in the log", len(written))
	}
	if err := p.Publish(topic, message.NewMessage("late", nil)); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("error after Close is %v", err)
	}
}

// Close reports what it cannot deliver: without the broker every
// accepted message fails, and its error says whether it may have been
// written; no caller waits forever.
func TestCloseReports(t *testing.T) {
	t.Parallel()
	broker, err := kafka.Start(kafka.Config{Open: true, Logger: testenv.Logger(t)})
	testenv.Must(t, err)
	brokers, topic := []string{broker.Addr()}, "test.close.away"
	bustest.Ensure(t, brokers, topic, 3, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, CloseTimeout: 200 * time.Millisecond})
	testenv.Must(t, p.Publish(topic, message.NewMessage("first", nil)))
	testenv.Must(t, broker.Close())
	const n = 100
	outcomes := make(chan error, n)
	var begun sync.WaitGroup
	for i := range n {
		begun.Add(1)
		go func() {
			begun.Done()
			outcomes <- p.Publish(topic, message.NewMessage(fmt.Sprint(i), nil))
		}()
	}
	begun.Wait()
	if err := p.Close(); err != nil && !strings.Contains(err.Error(), "the callers have their errors") {
		t.Errorf("Close returns %v", err)
	}
	for range n {
		select {
		case err := <-outcomes:
			if !errors.Is(err, bus.ErrClosed) && !errors.Is(err, bus.ErrUnknownOutcome) {
				t.Errorf("a message ended with %v", err)
			}
		case <-time.After(testenv.Patience):
			t.Fatal("a caller got no answer")
		}
	}
}

// A caller that stops waiting gets an unknown outcome; the message
// is still written.
func TestCancelledPublishIsUnknown(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.cancel"
	bustest.Ensure(t, brokers, topic, 1, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	testenv.Must(t, p.Publish(topic, message.NewMessage("first", nil)))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := p.PublishContext(ctx, topic, message.NewMessage("second", nil))
	if err != nil && !errors.Is(err, bus.ErrUnknownOutcome) {
		t.Fatalf("error is %v", err)
	}
	testenv.Must(t, p.Close())
	if n := len(bustest.ReadAll(t, brokers, topic)); n != 2 {
		t.Errorf("log holds %d records, want 2", n)
	}
}

func TestMain(m *testing.M) { os.Exit(bustest.Main(m)) }

// Callers learn soon that the broker's disk refuses their messages, long
// before their time is over, and publish again once it takes them.
func TestRefusedByTheDisk(t *testing.T) {
	t.Parallel()
	const topic = "test.disk"
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.WithLogger(bustest.Quiet{}))
	testenv.Must(t, err)
	t.Cleanup(c.Close)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: c.ListenAddrs(), DeliveryTimeout: time.Hour, CloseTimeout: time.Second})
	full := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.KafkaStorageError, Count: -1})
	for range 20 {
		if err := p.Publish(topic, message.NewMessage("refused", nil)); !errors.Is(err, bus.ErrUnknownOutcome) {
			t.Fatalf("%v, want %v", err, bus.ErrUnknownOutcome)
		}
	}
	full.Remove()
	bustest.Publish(t, p, topic, 0, 3, 1)
}

// Missing replicas named by brokers are shown, by topic.
func TestMissingCopiesAreShown(t *testing.T) {
	t.Parallel()
	const topic = "test.copies"
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topic), kfake.WithLogger(bustest.Quiet{}))
	testenv.Must(t, err)
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
