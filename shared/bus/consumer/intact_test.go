package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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
			bustest.Applied(t, pool, 100)
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
			bustest.Applied(t, pool, 100)
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
	bustest.Applied(t, pool, 100)
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
	testenv.Must(t, err)
	bustest.Run(t, c.WatchLog)
	return c
}

// damaged waits until a consumer finds its log damaged, and says what to do.
func damaged(t *testing.T, c *consumer.Consumer, reason string) {
	t.Helper()
	testenv.Eventually(t, func() error {
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
	testenv.Eventually(t, c.LogIntact)
}

func exec(t *testing.T, pool *pgxpool.Pool, statement string) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}

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
		testenv.Eventually(t, func() error {
			err := consumer.Ready()
			for _, part := range []string{bus.ErrNeverRead.Error(), topic, "partition 0", "offsets 0 to 9", "WEIR_ACCEPT_LOST_RECORDS"} {
				if err == nil || !strings.Contains(err.Error(), part) {
					return fmt.Errorf("Ready does not name %q: %w", part, err)
				}
			}
			return nil
		})
		bustest.Applied(t, pool, whole)
		stop()
	}
	bustest.CutLog(t, brokers, topic, 20)
	cfg.AcceptLost = true
	consumer, stop := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 100-20)
	testenv.Eventually(t, consumer.Ready)
	stop()

	// Accepting one loss does not accept the next: a position that the
	// log has passed still stops.
	if _, err := pool.Exec(context.Background(), `UPDATE bus_positions SET next = 5 WHERE partition = 0`); err != nil {
		t.Fatal(err)
	}
	consumer, _ = bustest.StartConsumer(t, cfg)
	bustest.NotReady(t, consumer, bus.ErrOutsideLog.Error())
}

// A topic deleted and re-created stops its consumer, running or not,
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
			bustest.Applied(t, pool, 100)
			if !running {
				stop()
			}
			bustest.ReplaceTopic(t, brokers, topic, 2, nil)
			bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 1000, 500, 40)
			if !running {
				c, stop = bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects))
			}
			bustest.NotReady(t, c, bus.ErrTopicReplaced.Error())
			bustest.Applied(t, pool, 100)
			testenv.Eventually(t, func() (err error) { // else the second is stored after it was cleared
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
			bustest.Applied(t, pool, 500)
		})
	}
}

// A consumer of a topic whose owner publishes again what it loses goes
// back to the start of a log that lost its end, or was recreated: while
// it runs, and at a start where the log has grown beyond its position.
// It ends up with everything that the log has, and is ready.
func TestRereads(t *testing.T) {
	t.Parallel()
	f, pool, topic := bustest.NewForgetful(t), bustest.Database(t), "test.reread"
	if _, err := pool.Exec(t.Context(), `CREATE TABLE seen (id text PRIMARY KEY)`); err != nil {
		t.Fatal(err)
	}
	bustest.Ensure(t, f.Brokers(), topic, 1, map[string]string{"cleanup.policy": "compact"})
	cfg := bustest.QuickConsumer(f.Brokers(), topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		for _, r := range records {
			if _, err := tx.Exec(ctx, `INSERT INTO seen VALUES ($1) ON CONFLICT DO NOTHING`, r.Header(bus.HeaderID)); err != nil {
				return err
			}
		}
		return nil
	})
	cfg.Rereads = true
	applied := func(want ...string) {
		t.Helper()
		testenv.Eventually(t, func() error {
			rows, err := pool.Query(t.Context(), `SELECT id FROM seen ORDER BY id`)
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err == nil && !slices.Equal(ids, want) {
				err = fmt.Errorf("applied %q, want %q", ids, want)
			}
			return err
		})
	}
	publish := func(first, n int) { bustest.PublishAll(t, f.Brokers(), topic, bustest.Keyed(first, n, 1000)...) }

	publish(10, 3)
	f.Remember()
	c, stop := bustest.StartConsumer(t, cfg)
	publish(13, 3)
	applied("id-10", "id-11", "id-12", "id-13", "id-14", "id-15")
	f.Forget(func() {}) // while it runs
	publish(20, 1)
	applied("id-10", "id-11", "id-12", "id-13", "id-14", "id-15", "id-20")
	testenv.Eventually(t, c.Ready)
	stop()

	f.Forget(func() {})
	publish(30, 4) // beyond the position
	c, stop = bustest.StartConsumer(t, cfg)
	applied("id-10", "id-11", "id-12", "id-13", "id-14", "id-15", "id-20", "id-30", "id-31", "id-32", "id-33")
	testenv.Eventually(t, c.Ready)
	stop()

	bustest.ReplaceTopic(t, f.Brokers(), topic, 1, nil)
	publish(40, 1)
	c, _ = bustest.StartConsumer(t, cfg)
	applied("id-10", "id-11", "id-12", "id-13", "id-14", "id-15", "id-20", "id-30", "id-31", "id-32", "id-33", "id-40")
	testenv.Eventually(t, c.Ready)
}

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
	bustest.Applied(t, pool, 200)
	isBehind(t, consumer.Lag, 0)
}

func isBehind(t *testing.T, lag func() map[int]int64, want int64) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if shown, known := lag()[0]; !known || shown != want {
			return fmt.Errorf("the lag is %d, want %d", shown, want)
		}
		return nil
	})
}
