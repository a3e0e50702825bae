package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/parked"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
)

// One organization's flood delays nobody else: what comes after thousands of
// its records, in the same partition, takes effect among the first, and each
// record once. Without lanes it waits for the flood.
func TestAFloodHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	const flood = 2000
	for _, c := range []struct {
		name  string
		lanes consumer.Lanes
		from  int // effects before that of the quiet record
		until int
	}{{"lanes", bustest.Strict, 1, flood / 4}, {"none", consumer.Lanes{}, flood, flood}} {
		t.Run(c.name, func(t *testing.T) {
			brokers, topic, pool, registry := testenv.SharedKafka(t), "test.flood."+c.name, bustest.Database(t), telemetry.New()
			bustest.Effects(t, pool)
			bustest.Ensure(t, brokers, topic, 1, nil)
			bustest.PublishAll(t, brokers, topic, append(bustest.OfLane("flood", 0, flood), bustest.OfLane("quiet", flood, 5)...)...)
			cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
			cfg.Lanes, cfg.MaxRecords, cfg.Metrics = c.lanes, 100, registry.For("test")
			consumer, _ := bustest.StartConsumer(t, cfg)
			bustest.Applied(t, pool, flood+5, 4*bustest.Patience)
			if n := bustest.Before(t, pool, fmt.Sprint("quiet-id-", flood)); n < c.from || n > c.until {
				t.Errorf("%d records took effect before that of the quiet one, want %d to %d", n, c.from, c.until)
			}
			bustest.InOrder(t, pool)
			testenv.Eventually(t, bustest.Patience, consumer.Ready)
			of := fmt.Sprintf(`{group=%q,service="test",topic=%q} `, topic, topic)
			bustest.Shows(t, registry, `weir_bus_deferred_lanes`+of+`0`, `weir_bus_deferred_records`+of+`0`, `weir_bus_deferred_bytes`+of+`0`,
				`weir_bus_deferred_age_seconds`+of+`0`, `weir_bus_applied_records_total`+of+fmt.Sprint(flood+5))
		})
	}
}

// What is in few partitions does not wait for all that is in the
// others: a broker fills its answers from the front, and who was
// left out comes first the next time.
func TestFullPartitionsStarveNone(t *testing.T) {
	t.Parallel()
	const full, each, quiet = 8, 96, 4
	brokers, topic, pool := testenv.SharedKafka(t), "test.full.partitions", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, full+quiet, nil)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for p := range int32(full + quiet) {
		records, size := each, 64<<10
		if p >= full {
			records, size = 1, 1
		}
		for range records {
			client.Produce(context.Background(), &kgo.Record{Partition: p, Value: make([]byte, size)}, nil)
		}
	}
	if err := client.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	const all = full*each + quiet
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	cfg.MaxRecords = 50
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, all, bustest.Patience)
	var last int
	err = pool.QueryRow(context.Background(), `SELECT max(n) FROM effects WHERE partition >= $1`, full).Scan(&last)
	if err != nil || last > all/2 {
		t.Errorf("the last quiet partition was applied after %d of %d records, error %v", last, all, err)
	}
}

// Lanes that are behind take turns: one with a small backlog is through long
// before one with a large one, and not because it came first.
func TestLanesTakeTurns(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.turns", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, append(append(bustest.OfLane("a", 0, 1500), bustest.OfLane("b", 0, 1500)...), bustest.OfLane("c", 0, 150)...)...)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	cfg.Lanes, cfg.MaxRecords = bustest.Strict, 100
	cfg.Lanes.Turn = time.Minute // so that turns are equal in records, however busy the machine is
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 3150, 4*bustest.Patience)
	bustest.InOrder(t, pool)
	if n := bustest.Before(t, pool, "c-id-149"); n > 1000 {
		t.Errorf("%d records took effect before the last of the lane that sent 150", n)
	}
	if a, b := bustest.Before(t, pool, "a-id-1499"), bustest.Before(t, pool, "b-id-1499"); max(a, b)-min(a, b) > 300 {
		t.Errorf("two equal lanes were through after %d and %d records", a, b)
	}
	bustest.WereDeferred(t, pool)
}

// A lane alone that is not late stays in order: nothing is
// deferred, nothing is read twice.
func TestWhoIsInTimeIsNotDeferred(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.intime", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 2, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("a", 0, 3000)...)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	cfg.Lanes, cfg.MaxRecords = consumer.Lanes{Of: bustest.LaneOf, Late: time.Hour}, 100
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 3000, bustest.Patience)
	var ever int
	if err := pool.QueryRow(context.Background(), `SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'bus_deferred'`).Scan(&ever); err != nil || ever > 0 {
		t.Errorf("%d were deferred, error %v", ever, err)
	}
}

// With as many positions of lanes as may be, nobody else is
// deferred, and nothing is lost.
func TestDeferralIsBounded(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.deferral.bounded", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	for i := range 6 {
		bustest.PublishAll(t, brokers, topic, bustest.OfLane(fmt.Sprint("lane", i), 0, 100)...)
	}
	var most int
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if n, err := bustest.Deferred(pool); err == nil {
			most = max(most, n)
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords = bustest.Strict, 20
	cfg.Lanes.Most = 2
	_, stop := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 600, 4*bustest.Patience)
	stop()
	bustest.InOrder(t, pool)
	if most == 0 || most > 2 {
		t.Errorf("%d lanes were deferred at once, want 1 or 2", most)
	}
}

// A deferred record that can never be applied is parked as it is, by its place
// in the log, and can be replayed; those around it take effect.
func TestDeferredPoisonIsParked(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.deferred.poison", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("flood", 0, 1000)...)
	var mu sync.Mutex
	healed := false
	refuse := func(r bus.Record) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case healed:
			return nil
		case r.Offset == 555 || r.Offset == 999: // the lane's last
			return bus.PermanentRecord(r, errors.New("no good"))
		case r.Offset == 777 || r.Offset == 3:
			return bus.Permanent(errors.New("no good"))
		}
		return nil
	}
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		for _, r := range records {
			if err := refuse(r); err != nil {
				return err
			}
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords, cfg.ParkedWatch = bustest.Strict, 100, 50*time.Millisecond
	consumer, _ := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 996, 4*bustest.Patience)
	testenv.Eventually(t, bustest.Patience, consumer.Ready)
	bustest.WereDeferred(t, pool)
	var offsets []int64
	bustest.InTx(t, pool, func(tx pgx.Tx) error {
		found, err := parked.List(context.Background(), tx, parked.Filter{}, 10)
		for _, p := range found {
			offsets = append(offsets, p.Record.Offset)
		}
		return err
	})
	if fmt.Sprint(offsets) != "[3 555 777 999]" {
		t.Fatalf("parked are %v", offsets)
	}
	mu.Lock()
	healed = true
	mu.Unlock()
	bustest.InTx(t, pool, func(tx pgx.Tx) error {
		_, err := parked.Replay(context.Background(), tx, parked.Filter{})
		return err
	})
	bustest.Applied(t, pool, 1000, 4*bustest.Patience)
}

// A transient fault in one lane's records delays no other, and
// is retried until it has passed. Records of the first share are
// in order with the others' and pass here.
func TestALaneThatFailsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.lane.fails", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, append(bustest.OfLane("flood", 0, 1000), bustest.OfLane("quiet", 0, 10)...)...)
	var healed atomic.Bool
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if bustest.LaneOf(records[0]) == "flood" && records[0].Offset > 0 && !healed.Load() {
			return errors.New("somebody else is down")
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords = bustest.Strict, 100
	bustest.StartConsumer(t, cfg)
	quiet := func(want int) {
		testenv.Eventually(t, bustest.Patience, func() error {
			var n int
			err := pool.QueryRow(context.Background(), `SELECT count(*) FROM effects WHERE lane = 'quiet'`).Scan(&n)
			if err == nil && n < want {
				err = fmt.Errorf("%d quiet records applied, want %d", n, want)
			}
			return err
		})
	}
	quiet(10)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("quiet", 10, 10)...)
	quiet(20)
	healed.Store(true)
	bustest.Applied(t, pool, 1020, 4*bustest.Patience)
	bustest.InOrder(t, pool)
}

// The last that a lane has left behind is tried again too where it
// fails, though nothing more is published.
func TestALanesLastTurnIsTakenAgain(t *testing.T) {
	t.Parallel()
	const last = 999
	brokers, topic, pool := testenv.SharedKafka(t), "test.lane.last.fails", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("flood", 0, last+1)...)
	var failures atomic.Int64
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if records[len(records)-1].Offset == last && failures.Add(1) <= 6 { // two turns, each of three tries
			return errors.New("somebody else is down")
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords = bustest.Strict, 100
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, last+1, 4*bustest.Patience)
	bustest.InOrder(t, pool)
}

// Neither does what goes wrong with a lane in one partition hold
// up the same lane in its others.
func TestALaneThatFailsInOnePartitionGoesOnInItsOthers(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.lane.partition.fails", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 2, nil)
	messages := bustest.OfLane("flood", 0, 2000)
	for i, m := range messages {
		m.Metadata[bus.KeyMetadata] = fmt.Sprint(i % 10)
	}
	inPartition := make(map[int]int)
	for _, at := range bustest.PublishAll(t, brokers, topic, messages...) {
		inPartition[at.Partition]++
	}
	var healed atomic.Bool
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		if r := records[0]; r.Partition == 0 && r.Offset > 0 && !healed.Load() {
			return errors.New("somebody else is down")
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords = bustest.Strict, 100
	bustest.StartConsumer(t, cfg)
	testenv.Eventually(t, bustest.Patience, func() error {
		var n int
		err := pool.QueryRow(context.Background(), `SELECT count(*) FROM effects WHERE partition = 1`).Scan(&n)
		if err == nil && n < inPartition[1] {
			err = fmt.Errorf("%d of %d records of the other partition applied", n, inPartition[1])
		}
		return err
	})
	healed.Store(true)
	bustest.Applied(t, pool, 2000, 4*bustest.Patience)
	bustest.InOrder(t, pool)
}

// A record that leaves its lane behind in the transaction that parks
// another one is counted as deferred too.
func TestDeferredBesideAParkedRecordIsCounted(t *testing.T) {
	t.Parallel()
	brokers, topic, pool, registry := testenv.SharedKafka(t), "test.deferred.counted", bustest.Database(t), telemetry.New()
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("flood", 0, 1000)...)
	first := make(chan int, 1)
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		select {
		case first <- len(records): // in the order of the log; all others are deferred
		default:
		}
		if records[0].Offset < 50 {
			return bus.Permanent(errors.New("no good"))
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords, cfg.Metrics = bustest.Strict, 100, registry.For("test")
	bustest.StartConsumer(t, cfg)
	bustest.Shows(t, registry, fmt.Sprintf(`weir_bus_deferred_records_total{group=%q,service="test",topic=%q} %d`, topic, topic, 1000-<-first))
	bustest.WereDeferred(t, pool)
}

// A consumer without lanes stops where lanes have left records behind, and
// reports it: it could not find them. With lanes it goes on.
func TestAConsumerWithoutLanesLeavesThemAlone(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.lanes.off", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("a", 0, 50)...)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	_, stop := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 50, bustest.Patience)
	stop()
	bustest.LeaveBehind(t, pool, "a", 49)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("a", 50, 50)...)
	consumer, stop := bustest.StartConsumer(t, cfg)
	testenv.Eventually(t, bustest.Patience, func() error {
		if err := consumer.Ready(); err == nil || !strings.Contains(err.Error(), "no Lanes.Of") {
			return fmt.Errorf("Ready says something else: %w", err)
		}
		return nil
	})
	stop()
	if a := bustest.Count(t, pool); a.All != 50 {
		t.Errorf("%d effects without lanes, want 50", a.All)
	}
	cfg.Lanes = bustest.Strict
	bustest.StartConsumer(t, cfg)
	testenv.Eventually(t, bustest.Patience, func() error {
		if a := bustest.Count(t, pool); a.All != 100+50 { // those that it left behind once more
			return fmt.Errorf("%d effects, want %d", a.All, 100+50)
		}
		return nil
	})
}

// A position of a lane that a person deletes while its consumer runs does not
// come back: the lane goes on from what is next in the log.
func TestADeletedPositionOfALaneDoesNotComeBack(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.lane.deleted", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("lost", 0, 50)...)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	cfg.Lanes = bustest.Strict
	_, stop := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 50, bustest.Patience)
	stop()
	bustest.LeaveBehind(t, pool, "lost", 20)
	bustest.CutLog(t, brokers, topic, 30)
	consumer, _ := bustest.StartConsumer(t, cfg)
	testenv.Eventually(t, bustest.Patience, func() error {
		if err := consumer.Ready(); err == nil || !strings.Contains(err.Error(), bus.ErrOutsideLog.Error()) {
			return fmt.Errorf("Ready says something else: %w", err)
		}
		return nil
	})
	bustest.AsSystem(t, pool, `DELETE FROM bus_deferred`)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("lost", 50, 100)...)
	bustest.Applied(t, pool, 150, bustest.Patience)
	bustest.InOrder(t, pool)
	testenv.Eventually(t, bustest.Patience, consumer.Ready)
}

// Deferred records that left the log stop their lane, with an error in the log,
// and nobody else; also after a restart, until a person decides. That takes
// effect at once, though nothing is published and no member comes or goes.
func TestDeferredRecordsThatAreGoneStopTheirLane(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.deferred.gone", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, append(bustest.OfLane("lost", 0, 50), bustest.OfLane("other", 0, 50)...)...)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	cfg.Lanes = bustest.Strict
	_, stop := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 100, bustest.Patience)
	stop()
	bustest.LeaveBehind(t, pool, "lost", 20)
	bustest.CutLog(t, brokers, topic, 10)
	var consumer *consumer.Consumer
	for i := range 2 {
		if i > 0 {
			stop()
		}
		registry := telemetry.New()
		cfg.Metrics = registry.For("test")
		consumer, stop = bustest.StartConsumer(t, cfg)
		testenv.Eventually(t, bustest.Patience, func() error {
			if err := consumer.Ready(); err == nil || !strings.Contains(err.Error(), bus.ErrOutsideLog.Error()) {
				return fmt.Errorf("Ready says something else: %w", err)
			}
			return nil
		})
		of := fmt.Sprintf(`{group=%q,service="test",topic=%q} `, topic, topic)
		bustest.Shows(t, registry, "weir_bus_halted_lanes"+of+"1", "weir_bus_halted_partitions"+of+"0")
		bustest.PublishAll(t, brokers, topic, bustest.OfLane("other", 100+i, 1)...)
		bustest.Applied(t, pool, 101+i, bustest.Patience)
	}
	bustest.AsSystem(t, pool, `UPDATE bus_deferred SET next = 10, halted = NULL`)
	testenv.Eventually(t, bustest.Patience, func() error {
		if a := bustest.Count(t, pool); a.All != 102+11 { // what the lane left behind from offset 10 on
			return fmt.Errorf("%d effects, want %d", a.All, 102+11)
		}
		return consumer.Ready()
	})
	if n, err := bustest.Deferred(pool); err != nil || n > 0 {
		t.Errorf("%d lanes are behind, error %v", n, err)
	}
}

// What was deferred in a topic that was deleted and made again is gone: it is
// dropped, with an error in the log, once a person decides that the consumer
// goes on in the new one, and nothing of the new one is taken for it.
func TestDeferredRecordsOfAReplacedTopic(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.deferred.replaced", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("a", 0, 100)...)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	cfg.Lanes = bustest.Strict
	_, stop := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 100, bustest.Patience)
	stop()
	bustest.LeaveBehind(t, pool, "a", 50)
	bustest.ReplaceTopic(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("a", 1000, 200)...)
	for _, statement := range []string{`UPDATE bus_positions SET next = 0, topic_id = NULL, halted = NULL`, `TRUNCATE effects`} {
		if _, err := pool.Exec(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 200, bustest.Patience)
	bustest.InOrder(t, pool)
	if n, err := bustest.Deferred(pool); err != nil || n > 0 {
		t.Errorf("%d lanes are behind, error %v", n, err)
	}
}

// Of which lane a record is, what names it and what it weighs can be
// anything: what is no name is of no lane.
func TestOddLanes(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.odd.lanes", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	odd := []string{"", "\xff\xfe", "a\x00b", strings.Repeat("x", 5000), "*", "ordinary"}
	var messages []*message.Message
	for i := range 600 {
		m := bustest.OfLane(odd[i%len(odd)], i, 1)[0]
		m.UUID = fmt.Sprint(i)
		messages = append(messages, m)
	}
	bustest.PublishAll(t, brokers, topic, messages...)
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		for i := range records {
			records[i].Headers = []bus.Header{{Key: "ce_id", Value: []byte(records[i].Header("ce_id"))}}
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Lanes, cfg.MaxRecords = bustest.Strict, 20
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 600, 4*bustest.Patience)
}
