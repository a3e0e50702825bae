package consumer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A topic deleted and made again stops its consumer, running or not,
// even if the new log is longer than the old one: none of it was
// applied, and its first part would be missing.
func TestConsumerOfAReplacedTopic(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running %v", running), func(t *testing.T) {
			brokers, topic, pool := kafkatest.Shared(t), fmt.Sprintf("test.replaced.%v", running), bustest.Database(t)
			bustest.Effects(t, pool)
			bustest.Ensure(t, brokers, topic, 2, nil)
			bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, 100, 40)
			c, stop := bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects))
			bustest.Applied(t, pool, 100, bustest.Timeout)
			if !running {
				stop()
			}
			bustest.ReplaceTopic(t, brokers, topic, 2, nil)
			bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 1000, 500, 40)
			if !running {
				c, stop = bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects))
			}
			bustest.NotReady(t, c, bus.ErrTopicReplaced.Error())
			bustest.Applied(t, pool, 100, bustest.Timeout)
			testenv.Eventually(t, bustest.Timeout, func() (err error) { // else the second is stored after it was cleared
				var halted int
				err = pool.QueryRow(context.Background(), `SELECT count(*) FROM bus_positions WHERE halted IS NOT NULL`).Scan(&halted)
				if err == nil && halted < 2 {
					err = fmt.Errorf("%d of 2 partitions are written down as stopped", halted)
				}
				return err
			})
			stop()

			goOn := `UPDATE bus_positions SET next = 0, topic_id = NULL, halted = NULL`
			if _, err := pool.Exec(context.Background(), goOn); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(context.Background(), `TRUNCATE effects`); err != nil {
				t.Fatal(err)
			}
			bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects))
			bustest.Applied(t, pool, 500, bustest.Timeout)
		})
	}
}
