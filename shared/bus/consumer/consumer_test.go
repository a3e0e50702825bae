package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/logend"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// A database that goes silent within a transaction and closes nothing
// delays the consumer by TransactionTimeout at most: it continues with
// a database that answers, and each record takes effect once.
func TestConsumerGivesUpASilentDatabase(t *testing.T) {
	t.Parallel()
	db, brokers, topic := postgrestest.Faulty(t), kafkatest.Shared(t), "test.silent"
	pool := bustest.DatabaseAt(t, db.URL)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, 100, 10)
	var silence sync.Once
	ended := make(chan error, 1)
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		silence.Do(db.BlackHole)
		err := bustest.WriteEffects(ctx, tx, records)
		select {
		case ended <- err:
		default:
		}
		return err
	})
	cfg.TransactionTimeout = 2 * time.Second
	bustest.StartConsumer(t, cfg)
	select {
	case err := <-ended:
		if err == nil {
			t.Fatal("a silent database took the records")
		}
	case <-time.After(testenv.Patience):
		t.Fatal("the transaction has no end")
	}
	db.Heal(t)
	pool.Reset()
	bustest.Applied(t, pool, 100)
}

// A transaction takes three exchanges beside its effect. It begins as the
// system, and the database ends it once its member says nothing.
func TestATransactionTakesThreeStatements(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.exchanges"
	pool, statements := pgtest.Counted(t, bustest.Database(t))
	bustest.Ensure(t, brokers, topic, 1, nil)
	p, committed := bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), make(chan struct{})
	var acts, silence string
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, _ []bus.Record) error {
		return tx.QueryRow(ctx, `SELECT current_setting('weir.organization'), current_setting('idle_in_transaction_session_timeout')`).Scan(&acts, &silence)
	})
	cfg.Committed = func([]bus.Record) { committed <- struct{}{} }
	cfg.ParkedWatch, cfg.EndWatch = time.Hour, time.Hour // they ask the database, too
	bustest.StartConsumer(t, cfg)
	for n := range 3 {
		sent := statements.Of(func() {
			bustest.Publish(t, p, topic, n, 1, 1)
			<-committed
		})
		if own := sent - 1; n > 0 && own != 3 { // the first comes while it takes its partition
			t.Errorf("a transaction took %d statements beside its effect", own)
		}
	}
	if acts != "*" || silence != "6s" {
		t.Errorf("a handler acts as %q, and may be silent for %q", acts, silence)
	}
}

// Several consumers share the work: each record takes effect once, in
// the order of its partition.
func TestConsumersShareTheWork(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.share", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 6, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	shared := map[int]int64{} // the first offset of each partition that is published after the last rebalance
	for _, position := range bustest.Publish(t, p, topic, 0, 3000, 50) {
		shared[position.Partition] = max(shared[position.Partition], position.Offset+1)
	}
	var committed atomic.Int64
	for range 3 {
		cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
		cfg.Committed = func(records []bus.Record) {
			for _, r := range records {
				if r.Offset >= shared[r.Partition] {
					committed.Add(1)
				}
			}
		}
		c, _ := bustest.StartConsumer(t, cfg)
		testenv.Eventually(t, c.Ready)
	}
	bustest.Publish(t, p, topic, 3000, 3000, 50)
	bustest.Applied(t, pool, 6000)
	if a := bustest.Count(t, pool); a.OutOfOrder > 0 {
		t.Errorf("%d records applied after later ones of their partition", a.OutOfOrder)
	}
	testenv.Eventually(t, func() error {
		if committed.Load() != 3000 {
			return fmt.Errorf("Committed was called with %d records, want 3000", committed.Load())
		}
		return nil
	})
}

// Records wait for others at most MaxWait, and a transaction
// holds at most MaxRecords.
func TestConsumerGathers(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.gather", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 2, nil)
	bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, 1000, 10)
	var mu sync.Mutex
	var sizes []int
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		mu.Lock()
		sizes = append(sizes, len(records))
		mu.Unlock()
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.MaxRecords = 300
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 1000)
	mu.Lock()
	defer mu.Unlock()
	if slices.Max(sizes) != 300 || len(sizes) > 8 {
		t.Errorf("transactions of %v records, want few and none above 300", sizes)
	}
}

// A transient error parks nothing, however often it comes: the same
// records are applied once it is over.
func TestPassingErrorsParkNothing(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.passing", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 2, nil)
	bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, 100, 10)
	var calls atomic.Int64
	bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if err := bustest.WriteEffects(ctx, tx, records); err != nil {
			return err
		}
		if calls.Add(1) < 6 {
			return errors.New("somebody else is down")
		}
		return nil
	}))
	bustest.Applied(t, pool, 100)
	var parked int
	if err := pool.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_user_tables WHERE relname = 'bus_parked' AND n_tup_ins > 0`).Scan(&parked); err != nil || parked > 0 {
		t.Errorf("%d parked, error %v", parked, err)
	}
}

// A position outside the log stops its partition, and Ready reports it;
// the others go on; no position changes, not even by a restart.
func TestPositionOutsideTheLogStops(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.outside", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 2, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	bustest.Publish(t, p, topic, 0, 100, 40)
	_, stop := bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects))
	bustest.Applied(t, pool, 100)
	stop()
	if _, err := pool.Exec(context.Background(), `UPDATE bus_positions SET next = 150 WHERE partition = 1`); err != nil {
		t.Fatal(err)
	}
	want := 100
	for range 3 { // by the third time the log has grown beyond the position: it would look right, with 50 records never applied
		c, stop := bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects))
		bustest.NotReady(t, c, "outside the log")
		for _, at := range bustest.Publish(t, p, topic, 0, 100, 40) {
			if at.Partition == 0 {
				want++
			}
		}
		bustest.Applied(t, pool, want)
		stop()
	}
}

// A consumer that runs before its topic exists waits for it, and
// is not ready before.
func TestConsumerWaitsForItsTopic(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.later", bustest.Database(t)
	bustest.Effects(t, pool)
	c, _ := bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects))
	select {
	case <-time.After(300 * time.Millisecond):
	case <-t.Context().Done():
	}
	if c.Ready() == nil {
		t.Fatal("ready without a topic")
	}
	bustest.Ensure(t, brokers, topic, 2, nil)
	bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, 100, 10)
	bustest.Applied(t, pool, 100)
	testenv.Eventually(t, c.Ready)
}

// New partitions are found and consumed from their start.
func TestPartitionsAdded(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.grow", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 2, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	bustest.Publish(t, p, topic, 0, 100, 40)
	bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects))
	bustest.StartConsumer(t, bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects))
	bustest.Applied(t, pool, 100)
	bustest.AddPartitions(t, brokers, topic, 8)
	grown := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	bustest.Publish(t, grown, topic, 100, 400, 40)
	bustest.Applied(t, pool, 500)
	var partitions int
	if err := pool.QueryRow(context.Background(), `SELECT count(DISTINCT partition) FROM effects`).Scan(&partitions); err != nil || partitions != 8 {
		t.Errorf("effects from %d partitions, want 8 (%v)", partitions, err)
	}
}

func TestMain(m *testing.M) { os.Exit(bustest.Main(m)) }

// A consumer passes over fillers, unless it asks for them; records
// before and behind them take effect once.
func TestFillersHaveNoEffect(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.fillers"
	bustest.Ensure(t, brokers, topic, 1, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	bustest.Publish(t, p, topic, 0, 10, 4)
	mover := &logend.Mover{Brokers: brokers, Topic: topic}
	testenv.Must(t, mover.Fill(t.Context(), 0, 10, 25))
	pool := bustest.Database(t)
	bustest.Effects(t, pool)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	c, _ := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 10)
	testenv.Eventually(t, c.Ready)
	if lag := c.Lag()[0]; lag != 0 {
		t.Errorf("%d records behind fillers", lag)
	}
	bustest.Publish(t, p, topic, 10, 10, 4)
	bustest.Applied(t, pool, 20)

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
