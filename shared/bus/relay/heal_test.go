package relay_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
)

const lossy = "test.lossy"

// places returns messages 1 to n of an outbox, one at each position.
func places(n int) (all []relay.Outgoing) {
	for i := 1; i <= n; i++ {
		all = append(all, place(lossy, fmt.Sprint("id-", i), "k", i))
	}
	return all
}

// newLossy returns a relay of messages 1 to n, in pages of five.
func newLossy(t testing.TB, brokers []string, pool *pgxpool.Pool, n int) relay.Config {
	t.Helper()
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, DeliveryTimeout: 2 * time.Second})
	return relay.Config{Pool: pool, Name: "test", Publisher: p, Read: page(places(n)), Batch: 5, Interval: 20 * time.Millisecond}
}

// publish runs a relay of messages 1 to n until all are published.
func publish(t testing.TB, brokers []string, pool *pgxpool.Pool, n int) {
	t.Helper()
	r := relay.New(newLossy(t, brokers, pool, n), testenv.Logger(t))
	stop := bustest.Run(t, r.Run)
	cursor(t, pool, int64(n))
	stop()
}

// inOrder checks that a log has the messages 1 to n in the order of
// their last copies, and returns how many records there are.
func inOrder(t testing.TB, brokers []string, n int) (records int) {
	t.Helper()
	ids := bustest.IDs(t, brokers, lossy)
	last := -1
	for i := 1; i <= n; i++ {
		id := fmt.Sprint("id-", i)
		at := len(ids) - 1
		for at >= 0 && ids[at] != id {
			at--
		}
		if at <= last {
			t.Fatalf("the last copy of %s is at %d, that of the one before at %d: %q", id, at, last, ids)
		}
		last = at
	}
	return len(ids)
}

// What a log has lost is published again, little more, and before
// anything new: after the end was lost, also where others have written
// beyond it since, and after the topic was recreated.
func TestRelayPublishesWhatWasLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose    func(t *testing.T, f *bustest.Forgetful)
		records int // at most, 0: all again
	}{
		"the end": {func(t *testing.T, f *bustest.Forgetful) { f.Forget(func() {}) }, 60 + 40},
		"the end, and others wrote beyond it": {func(t *testing.T, f *bustest.Forgetful) {
			f.Forget(func() {})
			bustest.PublishAll(t, f.Brokers(), lossy, bustest.Keyed(1000, 50, 1)...)
		}, 60 + 40 + 50},
		"everything": {func(t *testing.T, f *bustest.Forgetful) { bustest.ReplaceTopic(t, f.Brokers(), lossy, 1, nil) }, 61},
		"nothing":    {func(*testing.T, *bustest.Forgetful) {}, 61},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, pool := bustest.NewForgetful(t), bustest.Database(t)
			bustest.Ensure(t, f.Brokers(), lossy, 1, nil)
			publish(t, f.Brokers(), pool, 40)
			f.Remember()
			publish(t, f.Brokers(), pool, 60)
			c.lose(t, f)
			publish(t, f.Brokers(), pool, 61)
			testenv.Eventually(t, func() error {
				if ids := bustest.IDs(t, f.Brokers(), lossy); !slices.Contains(ids, "id-61") {
					return fmt.Errorf("not yet: %q", ids)
				}
				return nil
			})
			if records := inOrder(t, f.Brokers(), 61); records > c.records {
				t.Errorf("%d records, want at most %d", records, c.records)
			}
		})
	}
}

// A running relay finds a loss as soon as the log gives an offset again,
// or it is told of one; else, when it looks next. Metric and database show
// what it did.
func TestRelayFindsALossWhileItRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		interval time.Duration
		more     int
		told     bool
	}{
		"by what it publishes": {time.Hour, 1, false},
		"by looking":           {50 * time.Millisecond, 0, false},
		"by being told":        {time.Hour, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, pool, registry := bustest.NewForgetful(t), bustest.Database(t), telemetry.New()
			bustest.Ensure(t, f.Brokers(), lossy, 1, nil)
			publish(t, f.Brokers(), pool, 10)
			f.Remember()
			publish(t, f.Brokers(), pool, 20)
			cfg := newLossy(t, f.Brokers(), pool, 20)
			cfg.CheckInterval, cfg.Metrics = c.interval, registry.For("test")
			read, more := cfg.Read, make(chan struct{})
			cfg.Read = func(ctx context.Context, tx pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
				select {
				case <-more:
					return page(places(20+c.more))(ctx, tx, after, limit)
				default:
					return read(ctx, tx, after, limit)
				}
			}
			var lacks atomic.Bool
			cfg.Comparisons.Lacks = lacks.Load
			r := relay.New(cfg, testenv.Logger(t))
			bustest.Run(t, r.Run)
			testenv.Eventually(t, func() error { return held(t, pool) })
			f.Forget(func() {})
			lacks.Store(c.told)
			close(more)
			r.Wake()
			testenv.Eventually(t, func() error {
				if ids := bustest.IDs(t, f.Brokers(), lossy); !slices.Contains(ids, fmt.Sprint("id-", 20+c.more)) || !slices.Contains(ids, "id-20") {
					return fmt.Errorf("not yet: %q", ids)
				}
				return nil
			})
			cursor(t, pool, int64(20+c.more))
			inOrder(t, f.Brokers(), 20+c.more)
			var lost string
			var republished int
			err := pool.QueryRow(t.Context(), `SELECT lost, republished FROM bus_relays WHERE lost_at > now() - interval '1 hour'`).Scan(&lost, &republished)
			if err != nil || lost == "" || republished < 10 {
				t.Errorf("the database says that %d were published again, lost: %q, %v", republished, lost, err)
			}
			bustest.Shows(t, registry, fmt.Sprintf(`weir_bus_republished_records_total{relay="test",service="test"} %d`, republished))
		})
	}
}

// A relay that can't ask its brokers is behind only if it has something
// to publish.
func TestRelayWithoutBrokers(t *testing.T) {
	t.Parallel()
	for published, lag := range map[int]string{10: `0\n`, 11: `(0\.|[1-9])`} {
		t.Run(fmt.Sprint(published), func(t *testing.T) {
			t.Parallel()
			brokers, pool, registry := bustest.NewForgetful(t).Brokers(), bustest.Database(t), telemetry.New()
			bustest.Ensure(t, brokers, lossy, 1, nil)
			publish(t, brokers, pool, 10)
			cfg := newLossy(t, []string{"127.0.0.1:1"}, pool, published)
			cfg.Metrics = registry.For("test")
			read, reads := cfg.Read, make(chan struct{})
			cfg.Read = func(ctx context.Context, tx pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
				select {
				case reads <- struct{}{}:
				case <-ctx.Done():
				}
				return read(ctx, tx, after, limit)
			}
			bustest.Run(t, relay.New(cfg, testenv.Logger(t)).Run)
			for range 5 {
				<-reads
			}
			scrape := httptest.NewRecorder()
			registry.Handler().ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if !regexp.MustCompile(`weir_bus_relay_lag_seconds{relay="test",service="test"} ` + lag).Match(scrape.Body.Bytes()) {
				t.Errorf("the metrics show\n%s", scrape.Body)
			}
		})
	}
}

// held reports that a relay has its lease.
func held(t testing.TB, pool *pgxpool.Pool) error {
	t.Helper()
	var held bool
	if err := pool.QueryRow(t.Context(), `SELECT expires_at > clock_timestamp() FROM bus_relays`).Scan(&held); err != nil || !held {
		return fmt.Errorf("no relay has the lease: %w", err)
	}
	return nil
}

// What differs between tables and topics is published, and compared
// once more. Only then is the comparison done; and no difference, however
// stubborn, keeps it from being done.
func TestRelayCompares(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found []relay.Difference
		want  []string // published beyond 1 to 10
	}{
		"nothing": {[]relay.Difference{{}}, nil},
		"missing": {[]relay.Difference{{Lost: "two", GoBack: true, From: relay.Cursor{Position: 8}}, {}}, []string{"id-9", "id-10"}},
		"surplus": {[]relay.Difference{{Lost: "a tombstone", Publish: []relay.Outgoing{place(lossy, "gone", "k", 0)}}, {}}, []string{"gone"}},
		"stubborn": {[]relay.Difference{{Lost: "one", GoBack: true, From: relay.Cursor{Position: 9}}, {Lost: "one", GoBack: true, From: relay.Cursor{Position: 9}}},
			[]string{"id-10", "id-10"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers, pool := bustest.NewForgetful(t).Brokers(), bustest.Database(t)
			bustest.Ensure(t, brokers, lossy, 1, nil)
			cfg := newLossy(t, brokers, pool, 10)
			asked, done := 0, make(chan struct{})
			cfg.Comparisons.Compare = func(_ context.Context, published relay.Cursor) (relay.Difference, error) {
				if published.Position != 10 {
					t.Errorf("compared at %d, before the end of the outbox", published.Position)
				}
				asked++
				return c.found[asked-1], nil
			}
			cfg.Comparisons.Compared = func(context.Context) error {
				close(done)
				return nil
			}
			bustest.Run(t, relay.New(cfg, testenv.Logger(t)).Run)
			select {
			case <-done:
			case <-time.After(testenv.Patience):
				t.Fatal("the comparison is not done")
			}
			if ids := bustest.IDs(t, brokers, lossy); !slices.Equal(ids[10:], c.want) {
				t.Errorf("published beyond the outbox: %q, want %q", ids[10:], c.want)
			}
		})
	}
}
