package consumer_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// BenchmarkConsumer measures what lanes cost a single sender: a row for
// each record of 4 KiB, exactly once, in order without lanes, with
// lanes in time, and with late lanes, when everything is read twice.
// "passing" is how fast a flood is deferred: with an effect that takes
// 5 ms a record, until what follows the flood is applied.
func BenchmarkConsumer(b *testing.B) {
	const records, size = 20_000, 4 << 10
	brokers, topic := kafkatest.Shared(b), "test.bench.lanes"
	bustest.Ensure(b, brokers, topic, 4, nil)
	p := bustest.NewPublisher(b, publisher.Config{Brokers: brokers})
	for first := 0; first < records; first += 1000 {
		messages := bustest.OfLane("flood", first, 1000)
		for i, m := range messages {
			m.Payload = make([]byte, size)
			m.Metadata[bus.KeyMetadata] = fmt.Sprint(i)
		}
		if _, err := p.PublishContext(context.Background(), topic, messages...); err != nil {
			b.Fatal(err)
		}
	}
	last := bustest.OfLane("quiet", 0, 1)
	if _, err := p.PublishContext(context.Background(), topic, last...); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		lanes   consumer.Lanes
		passing bool
	}{
		{"lanes=none", consumer.Lanes{}, false},
		{"lanes=intime", consumer.Lanes{Of: bustest.LaneOf, Late: time.Hour}, false},
		{"lanes=late", bustest.Strict, false},
		{"passing", bustest.Strict, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(records * size)
			for range b.N {
				consumeAll(b, brokers, topic, c.lanes, c.passing, records+1)
			}
		})
	}
}

// consumeAll measures one consumer of a new group with its own
// database, from its first record on.
func consumeAll(b *testing.B, brokers []string, topic string, lanes consumer.Lanes, passing bool, n int64) {
	b.StopTimer()
	pool := bustest.Database(b)
	bustest.Effects(b, pool)
	var seen atomic.Int64
	begun, done := make(chan struct{}), make(chan struct{})
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if seen.Load() == 0 && records[0].Offset == 0 {
			select {
			case <-begun:
			default:
				close(begun)
			}
		}
		if passing {
			return tardy(ctx, records)
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Group, cfg.Lanes, cfg.MaxWait = fmt.Sprint(topic, ".", time.Now().UnixNano()), lanes, time.Millisecond
	cfg.Committed = func(records []bus.Record) {
		quiet := false
		for _, r := range records {
			quiet = quiet || bustest.LaneOf(r) == "quiet"
		}
		if all := seen.Add(int64(len(records))); all == n || passing && quiet {
			close(done)
		}
	}
	c, err := consumer.New(cfg, testenv.Logger(b))
	if err != nil {
		b.Fatal(err)
	}
	stop := bustest.Run(b, c.Run)
	<-begun
	b.StartTimer()
	<-done
	b.StopTimer()
	stop()
	pool.Close()
	b.StartTimer()
}

// tardy is slow for a flood.
func tardy(ctx context.Context, records []bus.Record) error {
	n := 0
	for _, r := range records {
		if bustest.LaneOf(r) == "flood" {
			n++
		}
	}
	select {
	case <-time.After(time.Duration(n) * 5 * time.Millisecond):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// A consumer with much to apply is ready, and says how far it is, until
// it has reached what the log had when it began.
func TestBacklog(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.backlog", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 2, nil)
	bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, 200, 40)
	blocked := make(chan struct{})
	release := sync.OnceFunc(func() { close(blocked) })
	defer release()
	applied := 0
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if applied += len(records); applied > 100 {
			select {
			case <-blocked:
			case <-ctx.Done():
			}
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.MaxRecords = 10
	c, _ := bustest.StartConsumer(t, cfg)
	testenv.Eventually(t, func() error {
		if b, exists := c.Backlog(); !exists || b.Records > 100 || b.Done < 0.4 || b.Done > 0.6 || b.Left <= 0 {
			return fmt.Errorf("the backlog is %+v", b)
		}
		return c.Ready()
	})
	release()
	testenv.Eventually(t, func() error {
		if b, exists := c.Backlog(); exists {
			return fmt.Errorf("the backlog is %+v", b)
		}
		return c.Ready()
	})
	bustest.Applied(t, pool, 200)
}
