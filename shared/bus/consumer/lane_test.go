package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// One organization's flood delays nobody else: a record after thousands
// of the flood, in the same partition, is among the first to take effect,
// and each record does once. Without lanes it waits for the flood.
func TestFloodDelaysNoOtherLane(t *testing.T) {
	t.Parallel()
	const flood = 2000
	for _, c := range []struct {
		name  string
		lanes consumer.Lanes
		from  int // effects before that of the quiet record
		until int
	}{{"lanes", bustest.Strict, 1, flood / 4}, {"none", consumer.Lanes{}, flood, flood}} {
		t.Run(c.name, func(t *testing.T) {
			brokers, topic, pool, registry := kafkatest.Shared(t), "test.flood."+c.name, bustest.Database(t), telemetry.New()
			bustest.Effects(t, pool)
			bustest.Ensure(t, brokers, topic, 1, nil)
			bustest.PublishAll(t, brokers, topic, append(bustest.OfLane("flood", 0, flood), bustest.OfLane("quiet", flood, 5)...)...)
			cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
			cfg.Lanes, cfg.MaxRecords, cfg.Metrics = c.lanes, 100, registry.For("test")
			consumer, _ := bustest.StartConsumer(t, cfg)
			bustest.Applied(t, pool, flood+5)
			if n := bustest.Before(t, pool, fmt.Sprint("quiet-id-", flood)); n < c.from || n > c.until {
				t.Errorf("%d records took effect before that of the quiet one, want %d to %d", n, c.from, c.until)
			}
			bustest.InOrder(t, pool)
			testenv.Eventually(t, consumer.Ready)
			of := fmt.Sprintf(`{group=%q,service="test",topic=%q} `, topic, topic)
			bustest.Shows(t, registry, `weir_bus_deferred_lanes`+of+`0`, `weir_bus_deferred_records`+of+`0`, `weir_bus_deferred_bytes`+of+`0`,
				`weir_bus_deferred_age_seconds`+of+`0`, `weir_bus_applied_records_total`+of+fmt.Sprint(flood+5))
		})
	}
}

// Records in few partitions do not wait for all the others': a broker
// fills its answers from the front, and omitted partitions come first
// the next time.
func TestFullPartitionsStarveNone(t *testing.T) {
	t.Parallel()
	const full, each, quiet = 8, 96, 4
	brokers, topic, pool := kafkatest.Shared(t), "test.full.partitions", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, full+quiet, nil)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MetadataMinAge(50*time.Millisecond))
	testenv.Must(t, err)
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
	testenv.Must(t, client.Flush(context.Background()))
	const all = full*each + quiet
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	cfg.MaxRecords = 50
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, all)
	var last int
	err = pool.QueryRow(context.Background(), `SELECT max(n) FROM effects WHERE partition >= $1`, full).Scan(&last)
	if err != nil || last > all/2 {
		t.Errorf("the last quiet partition was applied after %d of %d records, error %v", last, all, err)
	}
}

// Lanes with backlogs take turns: a small backlog ends long before a
// large one, and not because it came first.
func TestLanesTakeTurns(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.turns", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, append(append(bustest.OfLane("a", 0, 1500), bustest.OfLane("b", 0, 1500)...), bustest.OfLane("c", 0, 150)...)...)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	cfg.Lanes, cfg.MaxRecords = bustest.Strict, 100
	cfg.Lanes.Turn = time.Minute // so that turns are equal in records, however busy the machine is
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 3150)
	bustest.InOrder(t, pool)
	if n := bustest.Before(t, pool, "c-id-149"); n > 1000 {
		t.Errorf("%d records took effect before the last of the lane that sent 150", n)
	}
	if a, b := bustest.Before(t, pool, "a-id-1499"), bustest.Before(t, pool, "b-id-1499"); max(a, b)-min(a, b) > 300 {
		t.Errorf("two equal lanes were through after %d and %d records", a, b)
	}
	bustest.WereDeferred(t, pool)
}

// A single lane that is not late stays in order: nothing is deferred,
// nothing is read twice.
func TestLaneInTimeIsNotDeferred(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.intime", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 2, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("a", 0, 3000)...)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	cfg.Lanes, cfg.MaxRecords = consumer.Lanes{Of: bustest.LaneOf, Late: time.Hour}, 100
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 3000)
	var ever int
	if err := pool.QueryRow(context.Background(), `SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'bus_deferred'`).Scan(&ever); err != nil || ever > 0 {
		t.Errorf("%d were deferred, error %v", ever, err)
	}
}

// With as many positions of lanes as allowed, no other lane is
// deferred, and nothing is lost.
func TestDeferralIsBounded(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.deferral.bounded", bustest.Database(t)
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
	cfg.Lanes.MaxPositions = 2
	_, stop := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 600)
	stop()
	bustest.InOrder(t, pool)
	if most == 0 || most > 2 {
		t.Errorf("%d lanes were deferred at once, want 1 or 2", most)
	}
}

// A consumer without lanes stops at partitions with deferred records,
// and reports it: it could not find them. With lanes it continues.
func TestConsumerWithoutLanesStopsAtDeferred(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.lanes.off", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("a", 0, 50)...)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	_, stop := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 50)
	stop()
	bustest.LeaveBehind(t, pool, "a", 49)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("a", 50, 50)...)
	consumer, stop := bustest.StartConsumer(t, cfg)
	bustest.NotReady(t, consumer, "no Lanes.Of")
	stop()
	if a := bustest.Count(t, pool); a.All != 50 {
		t.Errorf("%d effects without lanes, want 50", a.All)
	}
	cfg.Lanes = bustest.Strict
	bustest.StartConsumer(t, cfg)
	testenv.Eventually(t, func() error {
		if a := bustest.Count(t, pool); a.All != 100+50 { // those that it deferred once more
			return fmt.Errorf("%d effects, want %d", a.All, 100+50)
		}
		return nil
	})
}

// applied publishes messages and consumes them by strict lanes, and
// returns the configuration of the consumer, which has stopped.
func applied(t *testing.T, topic string, messages ...*message.Message) consumer.Config {
	t.Helper()
	brokers, pool := kafkatest.Shared(t), bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, messages...)
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	cfg.Lanes = bustest.Strict
	_, stop := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, len(messages))
	stop()
	return cfg
}

// A position of a lane that an operator deletes while its consumer runs
// does not come back: the lane continues with the next records of the log.
func TestDeletedLanePositionStaysDeleted(t *testing.T) {
	t.Parallel()
	cfg := applied(t, "test.lane.deleted", bustest.OfLane("lost", 0, 50)...)
	brokers, topic, pool := cfg.Brokers, cfg.Topic, cfg.Pool
	bustest.LeaveBehind(t, pool, "lost", 20)
	bustest.CutLog(t, brokers, topic, 30)
	consumer, _ := bustest.StartConsumer(t, cfg)
	bustest.NotReady(t, consumer, bus.ErrOutsideLog.Error())
	bustest.AsSystem(t, pool, `DELETE FROM bus_deferred`)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("lost", 50, 100)...)
	bustest.Applied(t, pool, 150)
	bustest.InOrder(t, pool)
	testenv.Eventually(t, consumer.Ready)
}

// Deferred records that left the log stop only their lane, with an
// error in the log; also after a restart, until an operator decides.
// That takes effect at once, without new records or a rebalance.
func TestDeferredRecordsThatAreGoneStopTheirLane(t *testing.T) {
	t.Parallel()
	cfg := applied(t, "test.deferred.gone", append(bustest.OfLane("lost", 0, 50), bustest.OfLane("other", 0, 50)...)...)
	brokers, topic, pool := cfg.Brokers, cfg.Topic, cfg.Pool
	bustest.LeaveBehind(t, pool, "lost", 20)
	bustest.CutLog(t, brokers, topic, 10)
	var running *consumer.Consumer
	stop := func() {}
	for i := range 2 {
		stop()
		registry := telemetry.New()
		cfg.Metrics = registry.For("test")
		running, stop = bustest.StartConsumer(t, cfg)
		bustest.NotReady(t, running, bus.ErrOutsideLog.Error())
		of := fmt.Sprintf(`{group=%q,service="test",topic=%q} `, topic, topic)
		bustest.Shows(t, registry, "weir_bus_halted_lanes"+of+"1", "weir_bus_halted_partitions"+of+"0")
		bustest.PublishAll(t, brokers, topic, bustest.OfLane("other", 100+i, 1)...)
		bustest.Applied(t, pool, 101+i)
	}
	bustest.AsSystem(t, pool, `UPDATE bus_deferred SET next = 10, halted = NULL`)
	testenv.Eventually(t, func() error {
		if a := bustest.Count(t, pool); a.All != 102+11 { // the lane's deferred records from offset 10 on
			return fmt.Errorf("%d effects, want %d", a.All, 102+11)
		}
		return running.Ready()
	})
	if n, err := bustest.Deferred(pool); err != nil || n > 0 {
		t.Errorf("%d lanes are behind, error %v", n, err)
	}
}

// Records deferred in a topic that was deleted and re-created are gone: they
// are dropped, with an error in the log, once an operator resumes the
// consumer in the new topic, and no record of the new one is taken for them.
func TestDeferredRecordsOfAReplacedTopic(t *testing.T) {
	t.Parallel()
	cfg := applied(t, "test.deferred.replaced", bustest.OfLane("a", 0, 100)...)
	brokers, topic, pool := cfg.Brokers, cfg.Topic, cfg.Pool
	bustest.LeaveBehind(t, pool, "a", 50)
	bustest.ReplaceTopic(t, brokers, topic, 1, nil)
	bustest.PublishAll(t, brokers, topic, bustest.OfLane("a", 1000, 200)...)
	for _, statement := range []string{`UPDATE bus_positions SET next = 0, topic_id = NULL, halted = NULL`, `TRUNCATE effects`} {
		if _, err := pool.Exec(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 200)
	bustest.InOrder(t, pool)
	if n, err := bustest.Deferred(pool); err != nil || n > 0 {
		t.Errorf("%d lanes are behind, error %v", n, err)
	}
}

// A record's lane, its name and its cost can be anything; an invalid
// name means no lane.
func TestOddLanes(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.odd.lanes", bustest.Database(t)
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
	bustest.Applied(t, pool, 600)
}
