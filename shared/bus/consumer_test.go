package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/testenv"
)

// effects makes the table in which handlers of tests write down what they applied. It refuses nothing: what is applied twice is
// there twice.
func effects(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), `CREATE TABLE effects (n bigint GENERATED ALWAYS AS IDENTITY, id text, lane text, partition int, record_offset bigint)`); err != nil {
		t.Fatal(err)
	}
}

// writeEffects is a handler that writes each record down.
func writeEffects(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"id", "lane", "partition", "record_offset"},
		pgx.CopyFromSlice(len(records), func(i int) ([]any, error) {
			r := records[i]
			return []any{r.Header("ce_id"), laneOf(r), r.Partition, r.Offset}, nil
		}))
	return err
}

// laneOf is the lane of a record in tests that have lanes; the others have but one.
func laneOf(r bus.Record) string { return r.Header("ce_organization") }

// account is what a test finds in effects.
type account struct{ all, distinct, outOfOrder int }

func count(t testing.TB, pool *pgxpool.Pool) account {
	t.Helper()
	var a account
	err := pool.QueryRow(context.Background(), `
		SELECT count(*), count(DISTINCT (partition, record_offset)), count(*) FILTER (WHERE record_offset < before)
		  FROM (SELECT *, lag(record_offset) OVER (PARTITION BY partition, lane ORDER BY n) AS before FROM effects) e`).Scan(&a.all, &a.distinct, &a.outOfOrder)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// applied waits until n effects are there, and fails if any is missing or there twice.
func applied(t testing.TB, pool *pgxpool.Pool, n int, within time.Duration) {
	t.Helper()
	testenv.Eventually(t, within, func() error {
		if a := count(t, pool); a.all < n {
			return fmt.Errorf("%d of %d records applied", a.all, n)
		}
		return nil
	})
	if a := count(t, pool); a.all != n || a.distinct != n {
		t.Fatalf("%d effects of %d records, want %d of each", a.all, a.distinct, n)
	}
}

// quick is a consumer, in a group named as its topic, that notices rebalances fast.
func quick(brokers []string, topic string, pool *pgxpool.Pool, handle bus.Handler) bus.ConsumerConfig {
	return bus.ConsumerConfig{
		Brokers: brokers, Group: topic, Topic: topic, Pool: pool, Handle: handle, HeartbeatInterval: 100 * time.Millisecond,
		SessionTimeout: 6 * time.Second, RebalanceTimeout: 3 * time.Second, JoinBackoff: 50 * time.Millisecond, PartitionWatch: 300 * time.Millisecond,
	}
}

func startConsumer(t testing.TB, cfg bus.ConsumerConfig) (*bus.Consumer, func()) {
	t.Helper()
	c, err := bus.NewConsumer(cfg, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	return c, start(t, c.Run)
}

func publish(t testing.TB, p *bus.Publisher, topic string, first, n, keys int) []bus.Position {
	t.Helper()
	positions, err := p.PublishContext(context.Background(), topic, keyed(first, n, keys)...)
	if err != nil {
		t.Fatal(err)
	}
	return positions
}

// A database that goes silent in the middle of a transaction and closes nothing holds the consumer up for TransactionTimeout, and
// no longer: it goes on as soon as there is one that answers, and each record takes effect once.
func TestConsumerGivesUpASilentDatabase(t *testing.T) {
	t.Parallel()
	db, brokers, topic := testenv.FaultyPostgres(t), testenv.SharedKafka(t), "test.silent"
	pool := databaseAt(t, db.URL)
	effects(t, pool)
	ensure(t, brokers, topic, 1, nil)
	publish(t, newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 0, 100, 10)
	var silence sync.Once
	ended := make(chan error, 1)
	cfg := quick(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		silence.Do(db.BlackHole)
		err := writeEffects(ctx, tx, records)
		select {
		case ended <- err:
		default:
		}
		return err
	})
	cfg.TransactionTimeout = 2 * time.Second
	startConsumer(t, cfg)
	select {
	case err := <-ended:
		if err == nil {
			t.Fatal("a silent database took the records")
		}
	case <-time.After(patience):
		t.Fatal("the transaction has no end")
	}
	db.Heal(t)
	pool.Reset()
	applied(t, pool, 100, patience)
}

// Several consumers share the work: each record takes effect once, in the order of its partition.
func TestConsumersShareTheWork(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.share", database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 6, nil)
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	publish(t, p, topic, 0, 3000, 50)
	var told atomic.Int64
	for range 3 {
		cfg := quick(brokers, topic, pool, writeEffects)
		cfg.Committed = func(records []bus.Record) { told.Add(int64(len(records))) }
		c, _ := startConsumer(t, cfg)
		testenv.Eventually(t, patience, c.Ready)
	}
	publish(t, p, topic, 3000, 3000, 50)
	applied(t, pool, 6000, patience)
	if a := count(t, pool); a.outOfOrder > 0 {
		t.Errorf("%d records applied after later ones of their partition", a.outOfOrder)
	}
	testenv.Eventually(t, patience, func() error {
		if told.Load() != 6000 {
			return fmt.Errorf("Committed was told of %d records, want 6000", told.Load())
		}
		return nil
	})
}

// Records wait for others at most MaxWait, and a transaction holds at most MaxRecords.
func TestConsumerGathers(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.gather", database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 2, nil)
	publish(t, newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 0, 1000, 10)
	var mu sync.Mutex
	var sizes []int
	cfg := quick(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		mu.Lock()
		sizes = append(sizes, len(records))
		mu.Unlock()
		return writeEffects(ctx, tx, records)
	})
	cfg.MaxRecords = 300
	startConsumer(t, cfg)
	applied(t, pool, 1000, patience)
	mu.Lock()
	defer mu.Unlock()
	if slices.Max(sizes) != 300 || len(sizes) > 8 {
		t.Errorf("transactions of %v records, want few and none above 300", sizes)
	}
}

// A record that can never be applied is found among ten thousand, parked as it was with the reason, and nothing else is lost
// or held up. It makes no difference how the handler says it.
func TestFaultPoison(t *testing.T) {
	t.Parallel()
	bad := errors.New("this record is no good")
	for name, refuse := range map[string]func(context.Context, pgx.Tx, bus.Record) error{
		"permanent":        func(context.Context, pgx.Tx, bus.Record) error { return fmt.Errorf("wrapped: %w", bus.Permanent(bad)) },
		"permanent record": func(_ context.Context, _ pgx.Tx, r bus.Record) error { return bus.PermanentRecord(r, bad) },
		"panic":            func(context.Context, pgx.Tx, bus.Record) error { panic(bad) },
		"refused by the database": func(ctx context.Context, tx pgx.Tx, _ bus.Record) error {
			_, err := tx.Exec(ctx, `SELECT 'this record is no good'::integer`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := testenv.Rounds(t, 1, 3)
			each(t, n, func(i int) { poisonIsParked(t, i, refuse) })
			counts.add(row{fault: "a poison record in the middle: " + name, rounds: n, records: n * 10_000})
		})
	}
}

func poisonIsParked(t *testing.T, round int, refuse func(context.Context, pgx.Tx, bus.Record) error) {
	const n, culprit = 10_000, 6_789
	brokers, topic, pool := testenv.SharedKafka(t), fmt.Sprintf("test.poison.%d.%d", len(t.Name()), round), database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 3, nil)
	messages := keyed(0, n, 100)
	messages[culprit].Metadata["ce_organization"] = "org_1"
	positions, err := newPublisher(t, bus.PublisherConfig{Brokers: brokers}).PublishContext(context.Background(), topic, messages...)
	if err != nil {
		t.Fatal(err)
	}
	var transactions atomic.Int64
	cfg := quick(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		transactions.Add(1)
		for _, r := range records {
			if r.Header("ce_id") == messages[culprit].UUID {
				return refuse(ctx, tx, r)
			}
		}
		return writeEffects(ctx, tx, records)
	})
	c, _ := startConsumer(t, cfg)
	applied(t, pool, n-1, patience)
	testenv.Eventually(t, patience, c.Ready)
	if transactions.Load() > 100 {
		t.Errorf("%d transactions to find one record", transactions.Load())
	}
	tx, err := pool.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	var partition int
	var offset int64
	var value []byte
	var reason, id string
	if _, err := tx.Exec(context.Background(), `SELECT set_config('weir.organization', 'org_1', true)`); err != nil {
		t.Fatal(err)
	}
	err = tx.QueryRow(context.Background(), `SELECT partition, record_offset, value, reason, convert_from(header_values[array_position(header_names, 'ce_id')], 'UTF8')
		FROM bus_parked`).Scan(&partition, &offset, &value, &reason, &id)
	if err != nil {
		t.Fatal(err)
	}
	if want := positions[culprit]; partition != want.Partition || offset != want.Offset || string(value) != fmt.Sprint(culprit) || id != messages[culprit].UUID {
		t.Errorf("parked %q = %q of partition %d, offset %d, want those of %v", id, value, partition, offset, want)
	}
	if !strings.Contains(reason, "this record is no good") {
		t.Errorf("reason is %q", reason)
	}
}

// A passing error parks nothing, however often it comes: the same records are applied once it is over.
func TestPassingErrorsParkNothing(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.passing", database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 2, nil)
	publish(t, newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 0, 100, 10)
	var calls atomic.Int64
	startConsumer(t, quick(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if err := writeEffects(ctx, tx, records); err != nil {
			return err
		}
		if calls.Add(1) < 6 {
			return errors.New("somebody else is down")
		}
		return nil
	}))
	applied(t, pool, 100, patience)
	var parked int
	if err := pool.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_user_tables WHERE relname = 'bus_parked' AND n_tup_ins > 0`).Scan(&parked); err != nil || parked > 0 {
		t.Errorf("%d parked, error %v", parked, err)
	}
}

// A position outside the log stops its partition and says so; the others go on; nothing jumps, not even after a restart.
func TestPositionOutsideTheLogStops(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.outside", database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 2, nil)
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	publish(t, p, topic, 0, 100, 40)
	_, stop := startConsumer(t, quick(brokers, topic, pool, writeEffects))
	applied(t, pool, 100, patience)
	stop()
	if _, err := pool.Exec(context.Background(), `UPDATE bus_positions SET next = 150 WHERE partition = 1`); err != nil {
		t.Fatal(err)
	}
	want := 100
	for range 3 { // the third time the log has grown beyond the position: it would look right, and 50 records were never applied
		c, stop := startConsumer(t, quick(brokers, topic, pool, writeEffects))
		testenv.Eventually(t, patience, func() error {
			if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "outside the log") {
				return fmt.Errorf("Ready says something else: %w", err)
			}
			return nil
		})
		for _, at := range publish(t, p, topic, 0, 100, 40) {
			if at.Partition == 0 {
				want++
			}
		}
		applied(t, pool, want, patience)
		stop()
	}
}

// A consumer that runs before its topic exists waits for it, and is not ready before.
func TestConsumerWaitsForItsTopic(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.later", database(t)
	effects(t, pool)
	c, _ := startConsumer(t, quick(brokers, topic, pool, writeEffects))
	select {
	case <-time.After(300 * time.Millisecond):
	case <-t.Context().Done():
	}
	if c.Ready() == nil {
		t.Fatal("ready without a topic")
	}
	ensure(t, brokers, topic, 2, nil)
	publish(t, newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 0, 100, 10)
	applied(t, pool, 100, patience)
	testenv.Eventually(t, patience, c.Ready)
}

// New partitions are found and consumed from their start.
func TestPartitionsAdded(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.grow", database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 2, nil)
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	publish(t, p, topic, 0, 100, 40)
	startConsumer(t, quick(brokers, topic, pool, writeEffects))
	startConsumer(t, quick(brokers, topic, pool, writeEffects))
	applied(t, pool, 100, patience)
	addPartitions(t, brokers, topic, 8)
	grown := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	publish(t, grown, topic, 100, 400, 40)
	applied(t, pool, 500, patience)
	var partitions int
	if err := pool.QueryRow(context.Background(), `SELECT count(DISTINCT partition) FROM effects`).Scan(&partitions); err != nil || partitions != 8 {
		t.Errorf("effects from %d partitions, want 8 (%v)", partitions, err)
	}
}
