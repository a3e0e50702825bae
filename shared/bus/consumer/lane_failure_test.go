package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/parked"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A deferred record that can never be applied is parked unchanged, by
// its place in the log, and can be replayed; its neighbours take effect.
func TestDeferredPoisonIsParked(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.deferred.poison", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("flood", 0, 1000)...)
	var mu sync.Mutex
	healed := false
	refuse := func(r bus.Record) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case healed:
			return nil
		case r.Offset == 555 || r.Offset == 999: // the lane's last
			return bus.PermanentRecord(r, errors.New("no good"))
		case r.Offset == 777 || r.Offset == 3:
			return bus.Permanent(errors.New("no good"))
		}
		return nil
	}
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		for _, r := range records {
			if err := refuse(r); err != nil {
				return err
			}
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords, cfg.ParkedWatch = bustest.Strict, 100, 50*time.Millisecond
	consumer, _ := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 996)
	testenv.Eventually(t, consumer.Ready)
	bustest.WereDeferred(t, pool)
	var offsets []int64
	bustest.InTx(t, pool, func(tx pgx.Tx) error {
		found, err := parked.List(context.Background(), tx, parked.Filter{}, 10)
		for _, p := range found {
			offsets = append(offsets, p.Record.Offset)
		}
		return err
	})
	if fmt.Sprint(offsets) != "[3 555 777 999]" {
		t.Fatalf("parked are %v", offsets)
	}
	mu.Lock()
	healed = true
	mu.Unlock()
	bustest.InTx(t, pool, func(tx pgx.Tx) error {
		_, err := parked.Replay(context.Background(), tx, parked.Filter{})
		return err
	})
	bustest.Applied(t, pool, 1000)
}

// A transient fault in one lane's records delays no other lane, and is
// retried until it is over. Records of the first share are in order
// with the others', and succeed here.
func TestFailingLaneDelaysNoOther(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.lane.fails", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, append(bustest.OfLane("flood", 0, 1000), bustest.OfLane("quiet", 0, 10)...)...)
	var healed atomic.Bool
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if bustest.LaneOf(records[0]) == "flood" && records[0].Offset > 0 && !healed.Load() {
			return errors.New("somebody else is down")
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords = bustest.Strict, 100
	bustest.StartConsumer(t, cfg)
	quiet := func(want int) {
		testenv.Eventually(t, func() error {
			var n int
			err := pool.QueryRow(context.Background(), `SELECT count(*) FROM effects WHERE lane = 'quiet'`).Scan(&n)
			if err == nil && n < want {
				err = fmt.Errorf("%d quiet records applied, want %d", n, want)
			}
			return err
		})
	}
	quiet(10)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("quiet", 10, 10)...)
	quiet(20)
	healed.Store(true)
	bustest.Applied(t, pool, 1020)
	bustest.InOrder(t, pool)
}

// The last deferred record of a lane is retried too, though nothing
// more is published.
func TestLastRecordOfALaneIsRetried(t *testing.T) {
	t.Parallel()
	const last = 999
	brokers, topic, pool := kafkatest.Shared(t), "test.lane.last.fails", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("flood", 0, last+1)...)
	var failures atomic.Int64
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if records[len(records)-1].Offset == last && failures.Add(1) <= 6 { // two turns, each of three tries
			return errors.New("somebody else is down")
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords = bustest.Strict, 100
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, last+1)
	bustest.InOrder(t, pool)
}

// A fault of a lane in one partition does not delay the same lane
// in its others.
func TestALaneThatFailsInOnePartitionGoesOnInItsOthers(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.lane.partition.fails", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 2, nil)
	messages := bustest.OfLane("flood", 0, 2000)
	for i, m := range messages {
		m.Metadata[bus.KeyMetadata] = fmt.Sprint(i % 10)
	}
	inPartition := make(map[int]int)
	for _, at := range bustest.PublishAll(t, brokers, topic, messages...) {
		inPartition[at.Partition]++
	}
	var healed atomic.Bool
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if r := records[0]; r.Partition == 0 && r.Offset > 0 && !healed.Load() {
			return errors.New("somebody else is down")
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords = bustest.Strict, 100
	bustest.StartConsumer(t, cfg)
	testenv.Eventually(t, func() error {
		var n int
		err := pool.QueryRow(context.Background(), `SELECT count(*) FROM effects WHERE partition = 1`).Scan(&n)
		if err == nil && n < inPartition[1] {
			err = fmt.Errorf("%d of %d records of the other partition applied", n, inPartition[1])
		}
		return err
	})
	healed.Store(true)
	bustest.Applied(t, pool, 2000)
	bustest.InOrder(t, pool)
}

// A record deferred in the transaction that parks another one is
// counted as deferred too.
func TestDeferredBesideAParkedRecordIsCounted(t *testing.T) {
	t.Parallel()
	brokers, topic, pool, registry := kafkatest.Shared(t), "test.deferred.counted", bustest.Database(t), telemetry.New()
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("flood", 0, 1000)...)
	first := make(chan int, 1)
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		select {
		case first <- len(records): // in the order of the log; all others are deferred
		default:
		}
		if records[0].Offset < 50 {
			return bus.Permanent(errors.New("no good"))
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords, cfg.Metrics = bustest.Strict, 100, registry.For("test")
	bustest.StartConsumer(t, cfg)
	bustest.Shows(t, registry, fmt.Sprintf(`weir_bus_deferred_records_total{group=%q,service="test",topic=%q} %d`, topic, topic, 1000-<-first))
	bustest.WereDeferred(t, pool)
}

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
	testenv.Must(t, err)
	t.Cleanup(c.Close)
	for p := range int32(2) {
		testenv.Must(t, c.MoveTopicPartition(topic, p, p))
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
	bustest.Applied(t, before, 20)
	to(1, 5)
	bustest.Applied(t, before, 25)

	b.led.Store(false)
	to(0, 7)
	bustest.Applied(t, before, 32)
	after := bustest.Database(t)
	bustest.Effects(t, after)
	fresh := bustest.QuickConsumer(brokers, topic, after, bustest.WriteEffects)
	fresh.Group = "test.fresh"
	c, _ := bustest.StartConsumer(t, fresh)
	bustest.Applied(t, after, 17)
	if err := c.Ready(); err == nil {
		t.Error("ready although a partition was never read")
	}

	b.led.Store(true)
	to(1, 3)
	bustest.Applied(t, before, 35)
	bustest.Applied(t, after, 35)
}
