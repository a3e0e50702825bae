package follow_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/follow"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

func TestMain(m *testing.M) { os.Exit(bustest.Main(m)) }

// Pieces of an answer are delivered in turn by partition: the records
// of one do not wait for all of another.
func TestPartitionsTakeTurns(t *testing.T) {
	const partitions, messages, size = 2, 100, 32 << 10
	brokers, topic := kafkatest.Shared(t), "test.follow.turns"
	bustest.Ensure(t, brokers, topic, partitions, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	for i := range partitions * messages {
		m := bustest.OfLane("any", i, 1)[0]
		m.Payload = make([]byte, size)
		m.Metadata[bus.KeyMetadata] = fmt.Sprint(i)
		if _, err := p.PublishContext(t.Context(), topic, m); err != nil {
			t.Fatal(err)
		}
	}
	cluster := broker.NewCluster(brokers, &kafka.Dialer{Timeout: bus.DefaultDialTimeout})
	logs, err := cluster.Logs(t.Context(), topic, []int{0, 1})
	testenv.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var order []int
	read := 0
	f := follow.Follower{
		Cluster: cluster, Logger: testenv.Logger(t), Topic: topic, ID: logs.ID, Positions: map[int]int64{0: 0, 1: 0}, Wait: time.Second, MaxBytes: 8 << 20,
		Deliver: func(_ context.Context, c follow.Chunk) error {
			order = append(order, c.Partition)
			if read += len(c.Records); read == partitions*messages {
				cancel()
			}
			return nil
		},
	}
	_ = f.Run(ctx)
	if read != partitions*messages {
		t.Fatalf("%d records were read", read)
	}
	if len(order) < 6 || order[0] == order[1] || order[2] == order[3] {
		t.Errorf("pieces came of the partitions %v", order)
	}
}

// A broker tells a reader of a record at once after a pause, and gathers what
// follows: the answers to a stream of records are few.
func TestABusyReaderLetsTheBrokerGather(t *testing.T) {
	const messages, apart, gather = 40, 10 * time.Millisecond, 200 * time.Millisecond
	brokers, topic := kafkatest.Shared(t), "test.follow.gather"
	bustest.Ensure(t, brokers, topic, 1, nil)
	cluster := broker.NewCluster(brokers, &kafka.Dialer{Timeout: bus.DefaultDialTimeout})
	logs, err := cluster.Logs(t.Context(), topic, []int{0})
	testenv.Must(t, err)
	var chunks []int // records of each
	whole := make(chan struct{})
	f := follow.Follower{
		Cluster: cluster, Logger: testenv.Logger(t), Topic: topic, ID: logs.ID, Positions: map[int]int64{0: 0}, Wait: testenv.Patience, Gather: gather, MaxBytes: 8 << 20,
		Deliver: func(_ context.Context, c follow.Chunk) error {
			if len(c.Records) > 0 {
				chunks = append(chunks, len(c.Records))
			}
			if c.Next == messages {
				close(whole)
			}
			return nil
		},
	}
	stop := bustest.Run(t, func(ctx context.Context) error {
		_ = f.Run(ctx)
		return nil
	})
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	for i := range messages {
		_, err := p.PublishContext(t.Context(), topic, bustest.OfLane("any", i, 1)...)
		testenv.Must(t, err)
		time.Sleep(apart) // a stream of records
	}
	<-whole // before Wait is over, so not all of it was gathered
	stop()
	if chunks[0] == messages || len(chunks) > messages/2 {
		t.Errorf("%d records came as %v", messages, chunks)
	}
}
