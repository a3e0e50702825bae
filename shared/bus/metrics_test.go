package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/tracing/otlp"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tracer.Close)
	messages := bustest.Keyed(0, 2, 1)
	messages[1].Metadata.Set(contract.HeaderTraceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	bustest.PublishAll(t, brokers, topic, messages...)
	cfg := bustest.QuickConsumer(brokers, topic, bustest.Database(t), func(context.Context, pgx.Tx, []bus.Record) error { return nil })
	cfg.Metrics, cfg.Tracer = registry.For("test"), tracer
	bustest.StartConsumer(t, cfg)
	testenv.Eventually(t, bustest.Timeout, func() error {
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
	testenv.Eventually(t, bustest.Timeout, func() error {
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
