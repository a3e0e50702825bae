package consumer_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/logend"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A consumer passes over fillers, unless it asks for them; records
// before and behind them take effect once.
func TestFillersHaveNoEffect(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.fillers"
	bustest.Ensure(t, brokers, topic, 1, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	bustest.Publish(t, p, topic, 0, 10, 4)
	mover := &logend.Mover{Brokers: brokers, Topic: topic}
	if err := mover.Fill(t.Context(), 0, 10, 25); err != nil {
		t.Fatal(err)
	}
	pool := bustest.Database(t)
	bustest.Effects(t, pool)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	c, _ := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 10, bustest.Timeout)
	testenv.Eventually(t, bustest.Timeout, c.Ready)
	if lag := c.Lag()[0]; lag != 0 {
		t.Errorf("%d records behind fillers", lag)
	}
	bustest.Publish(t, p, topic, 10, 10, 4)
	bustest.Applied(t, pool, 20, bustest.Timeout)

	counted, all := bustest.Database(t), make(chan bus.Record, 100)
	cfg = bustest.QuickConsumer(brokers, topic, counted, func(_ context.Context, _ pgx.Tx, records []bus.Record) error {
		for _, r := range records {
			all <- r
		}
		return nil
	})
	cfg.Group, cfg.Fillers = topic+".all", true
	bustest.StartConsumer(t, cfg)
	for offset := range int64(35) {
		if r := <-all; r.Offset != offset || r.IsFiller() != (10 <= offset && offset < 25) {
			t.Errorf("at %d there is %+v", offset, r)
		}
	}
}
