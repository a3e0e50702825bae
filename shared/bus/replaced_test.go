package bus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/testenv"
)

// A topic that is deleted and made again stops its consumer, whether it runs or not, even where the new log is longer than the old
// one was: what is in it was never applied, and its first part would be missing.
func TestConsumerOfAReplacedTopic(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running %v", running), func(t *testing.T) {
			brokers, topic, pool := testenv.SharedKafka(t), fmt.Sprintf("test.replaced.%v", running), database(t)
			effects(t, pool)
			ensure(t, brokers, topic, 2, nil)
			publish(t, newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 0, 100, 40)
			c, stop := startConsumer(t, quick(brokers, topic, pool, writeEffects))
			applied(t, pool, 100, patience)
			if !running {
				stop()
			}
			replaceTopic(t, brokers, topic, 2, nil)
			publish(t, newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 1000, 500, 40)
			if !running {
				c, stop = startConsumer(t, quick(brokers, topic, pool, writeEffects))
			}
			stopped := func() error {
				if err := c.Ready(); err == nil || !strings.Contains(err.Error(), bus.ErrTopicReplaced.Error()) {
					return fmt.Errorf("Ready says something else: %w", err)
				}
				return nil
			}
			testenv.Eventually(t, patience, stopped)
			applied(t, pool, 100, patience)
			stop()

			goOn := `UPDATE bus_positions SET next = 0, topic_id = NULL, halted = NULL`
			if _, err := pool.Exec(context.Background(), goOn); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(context.Background(), `TRUNCATE effects`); err != nil {
				t.Fatal(err)
			}
			startConsumer(t, quick(brokers, topic, pool, writeEffects))
			applied(t, pool, 500, patience)
		})
	}
}
