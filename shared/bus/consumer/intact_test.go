package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A log that lost its end under a position is noticed, whether or not
// it has grown past it since: a consumer of any member says so, and the
// partition stays stopped.
func TestALogThatLostItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lose, want string }{
		"shorter":  {`UPDATE bus_positions SET next = next + 1000, last_offset = last_offset + 1000 WHERE partition = 1`, bus.ErrOutsideLog.Error()},
		"grown":    {`UPDATE bus_positions SET last_sum = last_sum # 1 WHERE partition = 1`, bus.ErrLogDiffers.Error()},
		"replaced": {`UPDATE bus_positions SET topic_id = gen_random_uuid()`, bus.ErrTopicReplaced.Error()},
		"stopped":  {`UPDATE bus_positions SET halted = 'stopped by a person' WHERE partition = 1`, "stopped by a person"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers, topic, pool := kafkatest.Shared(t), "test.intact."+name, bustest.Database(t)
			bustest.Effects(t, pool)
			bustest.Ensure(t, brokers, topic, 2, nil)
			bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, 100, 40)
			cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
			cfg.EndWatch = 50 * time.Millisecond
			_, stop := bustest.StartConsumer(t, cfg)
			bustest.Applied(t, pool, 100, bustest.Timeout)
			intact(t, watching(t, cfg))
			stop()

			exec(t, pool, c.lose)
			idle := watching(t, cfg)
			if err := idle.LogIntact(); err == nil {
				t.Error("the log is trusted before it was compared")
			}
			damaged(t, idle, c.want)
			if name == "replaced" { // the topic is the same: claiming it waits until the brokers agree
				return
			}
			for range 2 {
				c2, stop := bustest.StartConsumer(t, cfg)
				bustest.NotReady(t, c2, c.want)
				stop()
			}
			exec(t, pool, `UPDATE bus_positions p SET halted = NULL, last_offset = NULL,
				next = (SELECT max(record_offset) + 1 FROM effects e WHERE e.partition = p.partition)`)
			intact(t, watching(t, cfg))
			bustest.Applied(t, pool, 100, bustest.Timeout)
		})
	}
}

// A position remembers the last record that it has passed.
func TestPositionsHaveMarks(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.marks", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 2, nil)
	bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, 100, 40)
	_, stop := bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects))
	bustest.Applied(t, pool, 100, bustest.Timeout)
	stop()
	last := map[int]bus.Mark{}
	for _, r := range bustest.ReadAll(t, brokers, topic) {
		last[r.Partition] = r.Mark()
	}
	for partition, mark := range last {
		var next, offset, sum int64
		var at time.Time
		err := pool.QueryRow(t.Context(), `SELECT next, last_offset, last_sum, last_time FROM bus_positions WHERE partition = $1`, partition).
			Scan(&next, &offset, &sum, &at)
		if err != nil || next != mark.Offset+1 || offset != mark.Offset || uint32(sum) != mark.Sum || !at.Equal(mark.Time) {
			t.Errorf("partition %d at %d: %d, %x, %s, want %+v (%v)", partition, next, offset, sum, at, mark, err)
		}
	}
}

// Without a database nothing is known of the log, which is trusted
// until there is one.
func TestWithoutADatabaseTheLogIsTrusted(t *testing.T) {
	t.Parallel()
	pool := bustest.Database(t)
	pool.Close()
	intact(t, watching(t, bustest.QuickConsumer(kafkatest.Shared(t), "test.intact.nowhere", pool, bustest.WriteEffects)))
}

// watching returns a consumer that watches its log, and joins no group.
func watching(t *testing.T, cfg consumer.Config) *consumer.Consumer {
	t.Helper()
	c, err := consumer.New(cfg, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	bustest.Run(t, c.WatchLog)
	return c
}

// damaged waits until a consumer finds its log damaged, and says what to do.
func damaged(t *testing.T, c *consumer.Consumer, reason string) {
	t.Helper()
	testenv.Eventually(t, bustest.Timeout, func() error {
		err := c.LogIntact()
		if err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), "weir resume") {
			return fmt.Errorf("not %q: %w", reason, err)
		}
		return nil
	})
}

// intact waits until a consumer finds its log sound.
func intact(t *testing.T, c *consumer.Consumer) {
	t.Helper()
	testenv.Eventually(t, bustest.Timeout, c.LogIntact)
}

func exec(t *testing.T, pool *pgxpool.Pool, statement string) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}
