package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A consumer that can apply nothing shows the whole log as lag, also
// what it has no room to fetch, and continues once it can.
func TestLagCountsWhatIsNotFetched(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.lag", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	cured := make(chan struct{})
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		select {
		case <-cured:
			return bustest.WriteEffects(ctx, tx, records)
		default:
			return errors.New("the database is full")
		}
	})
	cfg.MaxBytes, cfg.BufferBytes, cfg.EndWatch, cfg.MaxWait = 100, 200, 20*time.Millisecond, time.Millisecond
	consumer, _ := bustest.StartConsumer(t, cfg)
	for sent := 50; sent <= 200; sent += 50 {
		bustest.Publish(t, p, topic, sent-50, 50, 10)
		isBehind(t, consumer.Lag, int64(sent))
	}
	close(cured)
	bustest.Applied(t, pool, 200, bustest.Timeout)
	isBehind(t, consumer.Lag, 0)
}

func isBehind(t *testing.T, lag func() map[int]int64, want int64) {
	t.Helper()
	testenv.Eventually(t, bustest.Timeout, func() error {
		if shown, known := lag()[0]; !known || shown != want {
			return fmt.Errorf("the lag is %d, want %d", shown, want)
		}
		return nil
	})
}
