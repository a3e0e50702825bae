package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/tracing/otlp"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

// A stopped lane stays stopped whatever its age: its last records may
// be in the log, and are not applied without those before them.
func TestStoppedLanesStay(t *testing.T) {
	pool := pgtest.Open(t, "bus", bus.Migrations())
	bustest.AsSystem(t, pool, `INSERT INTO bus_deferred (organization, group_name, topic, partition, topic_id, next, last, records, bytes, since, halted)
		VALUES ('org_1', 'g', 't', 0, gen_random_uuid(), 1, 9, 9, 9, now() - interval '1 year', 'records are gone')`)
	pruner := prune.New(prune.Config{Pool: pool, Tables: bus.Retention{}.Tables, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	testenv.Must(t, pruner.RunOnce(t.Context()))
	if n, err := bustest.Deferred(pool); err != nil || n != 1 {
		t.Errorf("%d lanes are left, %v, want the one that was stopped", n, err)
	}
}

// Parked records are deleted after the set number of days, 90 by default.
func TestParkedRecordsAge(t *testing.T) {
	pool := pgtest.Open(t, "bus", bus.Migrations())
	bustest.AsSystem(t, pool, `INSERT INTO bus_parked (organization, group_name, topic, partition, record_offset, record_time, header_names, header_values, reason, failed_at)
		SELECT 'org_1', 'g', 't', 0, days, now(), '{}', '{}', 'no good', now() - make_interval(days => days) FROM unnest(ARRAY[1, 20, 80, 100]) AS days`)
	for _, test := range []struct{ days, left int }{{0, 3}, {30, 2}, {8, 1}} {
		pruner := prune.New(prune.Config{
			Pool: pool, Tables: bus.Retention{ParkedDays: test.days}.Tables, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		})
		testenv.Must(t, pruner.RunOnce(t.Context()))
		var left int
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return errors.Join(pg.AsSystem(t.Context(), tx), tx.QueryRow(t.Context(), `SELECT count(*) FROM bus_parked`).Scan(&left))
		})
		if err != nil || left != test.left {
			t.Errorf("after %d days %d records are left, %v, want %d", test.days, left, err, test.left)
		}
	}
	if err := (bus.Retention{ParkedDays: 7}).Validate(); err == nil {
		t.Error("parked records may go before their ranges")
	}
}

// What other clients write can be read, however compressed; they read
// what we write, and find keys in the same partitions.
func TestOtherClients(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Shared(t)
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		t.Run(name, func(t *testing.T) {
			topic := "test.others." + name
			bustest.Ensure(t, brokers, topic, 5, nil)
			client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(codec), kgo.ConsumeTopics(topic),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(50*time.Millisecond)) // else it sees a topic only after seconds
			testenv.Must(t, err)
			defer client.Close()
			messages := bustest.Keyed(0, 200, 50)
			places := make(map[string]int32)
			for _, m := range messages {
				r := &kgo.Record{Key: []byte(m.Metadata[bus.KeyMetadata]), Value: m.Payload, Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte(m.UUID)}}}
				testenv.Must(t, client.ProduceSync(context.Background(), r).FirstErr())
				places[string(r.Key)] = r.Partition
			}
			if n := len(bustest.ReadAll(t, brokers, topic)); n != 200 {
				t.Errorf("read %d records, want 200", n)
			}
			compression := publisher.Uncompressed
			if name == "zstd" {
				compression = publisher.Zstd
			}
			positions, err := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, Compression: compression}).PublishContext(context.Background(), topic, messages...)
			testenv.Must(t, err)
			for i, at := range positions {
				if want := places[messages[i].Metadata[bus.KeyMetadata]]; int32(at.Partition) != want {
					t.Fatalf("key %q is in partition %d, the other client has it in %d", messages[i].Metadata[bus.KeyMetadata], at.Partition, want)
				}
			}
			for seen := 0; seen < 400; {
				fetches := client.PollFetches(t.Context())
				fetches.EachError(func(topic string, p int32, err error) { t.Fatal(topic, p, err) })
				fetches.EachRecord(func(*kgo.Record) { seen++ })
			}
		})
	}
}

// Published, applied and parked records are counted, and a consumer's
// lag is shown.
func TestMetricsOfPublisherAndConsumer(t *testing.T) {
	t.Parallel()
	brokers, topic, pool, registry := kafkatest.Shared(t), "test.metrics", bustest.Database(t), telemetry.New()
	bustest.Ensure(t, brokers, topic, 2, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, MaxMessageBytes: 1000, Metrics: registry.For("test")})
	positions := bustest.Publish(t, p, topic, 0, 100, 10)
	large := bustest.Keyed(100, 1, 1)
	large[0].Payload = make([]byte, 1001)
	if err := p.Publish(topic, large...); !errors.Is(err, bus.ErrTooLarge) {
		t.Fatalf("Publish = %v, want %v", err, bus.ErrTooLarge)
	}
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(_ context.Context, _ pgx.Tx, records []bus.Record) error {
		for _, r := range records {
			if (bus.Position{Partition: r.Partition, Offset: r.Offset}) == positions[7] {
				return bus.PermanentRecord(r, errors.New("poison"))
			}
		}
		return nil
	})
	cfg.Metrics = registry.For("test")
	bustest.StartConsumer(t, cfg)
	consumer := `{group="test.metrics",service="test",topic="test.metrics"}`
	bustest.Shows(t, registry,
		`weir_bus_published_records_total{service="test"} 100`,
		`weir_bus_publish_failed_records_total{service="test"} 1`,
		`weir_bus_publish_unknown_records_total{service="test"} 0`,
		`weir_bus_applied_records_total`+consumer+` 99`,
		`weir_bus_apply_delay_seconds_count`+consumer+` 99`,
		`weir_bus_apply_delay_seconds_bucket{group="test.metrics",service="test",topic="test.metrics",le="1800"} 99`,
		`weir_bus_parked_records_total`+consumer+` 1`,
		`weir_bus_halted_partitions`+consumer+` 0`,
		`weir_bus_lag_records{group="test.metrics",partition="0",service="test",topic="test.metrics"} 0`,
		`weir_bus_lag_records{group="test.metrics",partition="1",service="test",topic="test.metrics"} 0`)
}

// The delay of a sampled request's record has as exemplar the trace of
// the transaction that committed it.
func TestExemplarsOfDelay(t *testing.T) {
	t.Parallel()
	brokers, topic, registry, collector := kafkatest.Shared(t), "test.exemplars", telemetry.New(), tracingtest.New(t)
	bustest.Ensure(t, brokers, topic, 1, nil)
	tracer, err := otlp.Config{Endpoint: collector.URL}.Open("test", nil, testenv.Logger(t))
	testenv.Must(t, err)
	t.Cleanup(tracer.Close)
	messages := bustest.Keyed(0, 2, 1)
	messages[1].Metadata.Set(contract.HeaderTraceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	bustest.PublishAll(t, brokers, topic, messages...)
	cfg := bustest.QuickConsumer(brokers, topic, bustest.Database(t), func(context.Context, pgx.Tx, []bus.Record) error { return nil })
	cfg.Metrics, cfg.Tracer = registry.For("test"), tracer
	bustest.StartConsumer(t, cfg)
	testenv.Eventually(t, func() error {
		shown := tracingtest.Exemplars(registry.Handler(), "weir_bus_apply_delay_seconds")
		transactions := slices.DeleteFunc(collector.Spans(), func(s tracingtest.Span) bool { return s.Parent != "" })
		if len(shown) != 1 || len(transactions) != 1 || shown[0] != transactions[0].Trace {
			return fmt.Errorf("exemplars %q of %+v", shown, transactions)
		}
		return nil
	})
}

// A relay that does not reach the end of its outbox shows its lag
// until it does.
func TestMetricsOfRelay(t *testing.T) {
	t.Parallel()
	brokers, topic, pool, registry := kafkatest.Shared(t), "test.metrics.relay", bustest.Database(t), telemetry.New()
	bustest.Ensure(t, brokers, topic, 1, nil)
	repaired := make(chan struct{})
	read := func(ctx context.Context, tx pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
		select {
		case <-repaired:
		default:
			return nil, errors.New("broken")
		}
		if after.Position == 3 {
			return nil, nil
		}
		var all []relay.Outgoing
		for i, m := range bustest.Keyed(0, 3, 1) {
			all = append(all, relay.Outgoing{Topic: topic, Message: m, Cursor: relay.Cursor{Position: int64(i + 1)}})
		}
		return all, nil
	}
	r := relay.New(relay.Config{
		Pool: pool, Name: "test", Publisher: bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), Read: read,
		Interval: 20 * time.Millisecond, Metrics: registry.For("test"),
	}, testenv.Logger(t))
	bustest.Run(t, r.Run)
	testenv.Eventually(t, func() error {
		scrape := httptest.NewRecorder()
		registry.Handler().ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if strings.Contains(scrape.Body.String(), `weir_bus_relay_lag_seconds{relay="test",service="test"} 0`+"\n") {
			return errors.New("the relay shows no lag")
		}
		return nil
	})
	close(repaired)
	bustest.Shows(t, registry,
		`weir_bus_relay_lag_seconds{relay="test",service="test"} 0`,
		`weir_bus_relayed_records_total{relay="test",service="test"} 3`)
}

// A record that can never be applied is found among ten thousand and
// parked unchanged with the reason; nothing else is lost or delayed,
// however the handler reports it.
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

// A record whose content must be erased is parked as a place only.
func TestErasedRecordsAreParkedEmpty(t *testing.T) {
	t.Parallel()
	const n, culprit = 10, 4
	brokers, topic, pool := kafkatest.Shared(t), "test.erased", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	messages := bustest.Keyed(0, n, 100)
	if _, err := bustest.NewPublisher(t, publisher.Config{Brokers: brokers}).PublishContext(context.Background(), topic, messages...); err != nil {
		t.Fatal(err)
	}
	isCulprit := func(r bus.Record) bool { return r.Header("ce_id") == messages[culprit].UUID }
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		for _, r := range records {
			if isCulprit(r) {
				return bus.PermanentRecord(r, errors.New("this record is no good"))
			}
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	cfg.Erased = func(_ context.Context, _ pgx.Tx, r bus.Record) (bool, error) { return isCulprit(r), nil }
	c, _ := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, n-1)
	testenv.Eventually(t, c.Ready)
	var parked, empty int
	err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), `SELECT set_config('weir.organization', '*', true)`); err != nil {
			return err
		}
		return tx.QueryRow(context.Background(), `SELECT count(*), count(*) FILTER (WHERE value IS NULL AND key IS NULL AND header_names = '{}') FROM bus_parked`).
			Scan(&parked, &empty)
	})
	if err != nil || parked != 1 || empty != 1 {
		t.Errorf("%d records are parked, %d of them empty, %v", parked, empty, err)
	}
}

func poisonIsParked(t *testing.T, round int, refuse func(context.Context, pgx.Tx, bus.Record) error) {
	const n, culprit = 10_000, 6_789
	brokers, topic, pool := kafkatest.Shared(t), fmt.Sprintf("test.poison.%d.%d", len(t.Name()), round), bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 3, nil)
	messages := bustest.Keyed(0, n, 100)
	messages[culprit].Metadata["ce_organization"] = "org_1"
	positions, err := bustest.NewPublisher(t, publisher.Config{Brokers: brokers}).PublishContext(context.Background(), topic, messages...)
	testenv.Must(t, err)
	var transactions atomic.Int64
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		transactions.Add(1)
		for _, r := range records {
			if r.Header("ce_id") == messages[culprit].UUID {
				return refuse(ctx, tx, r)
			}
		}
		return bustest.WriteEffects(ctx, tx, records)
	})
	c, _ := bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, n-1)
	testenv.Eventually(t, c.Ready)
	if transactions.Load() > 100 {
		t.Errorf("%d transactions to find one record", transactions.Load())
	}
	tx, err := pool.Begin(context.Background())
	testenv.Must(t, err)
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
	testenv.Must(t, err)
	if want := positions[culprit]; partition != want.Partition || offset != want.Offset || string(value) != fmt.Sprint(culprit) || id != messages[culprit].UUID {
		t.Errorf("parked %q = %q of partition %d, offset %d, want those of %v", id, value, partition, offset, want)
	}
	if !strings.Contains(reason, "this record is no good") {
		t.Errorf("reason is %q", reason)
	}
}
