package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A consumer stops at a partition that lost its beginning before it was
// read, also after a restart, and reports a remedy: a module rebuilt
// too late would silently lack the records. With the loss accepted it
// continues with the rest of the log.
func TestALogThatWasCutBeforeItWasRead(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.lost", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 2, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	whole := 0
	for _, at := range bustest.Publish(t, p, topic, 0, 100, 40) {
		whole += at.Partition // those of partition 1, which is not cut
	}
	bustest.CutLog(t, brokers, topic, 10)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	for range 2 {
		consumer, stop := bustest.StartConsumer(t, cfg)
		testenv.Eventually(t, bustest.Timeout, func() error {
			err := consumer.Ready()
			for _, part := range []string{bus.ErrNeverRead.Error(), topic, "partition 0", "offsets 0 to 9", "WEIR_ACCEPT_LOST_RECORDS"} {
				if err == nil || !strings.Contains(err.Error(), part) {
					return fmt.Errorf("Ready does not name %q: %w", part, err)
				}
			}
			return nil
		})
		bustest.Applied(t, pool, whole, bustest.Timeout)
		stop()
	}
	bustest.CutLog(t, brokers, topic, 20)
	cfg.AcceptLost = true
	consumer, stop := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 100-20, bustest.Timeout)
	testenv.Eventually(t, bustest.Timeout, consumer.Ready)
	stop()

	// Accepting one loss does not accept the next: a position that the
	// log has passed still stops.
	if _, err := pool.Exec(context.Background(), `UPDATE bus_positions SET next = 5 WHERE partition = 0`); err != nil {
		t.Fatal(err)
	}
	consumer, _ = bustest.StartConsumer(t, cfg)
	bustest.NotReady(t, consumer, bus.ErrOutsideLog.Error())
}
