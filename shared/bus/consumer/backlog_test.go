package consumer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

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
