package parked_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/parked"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// picky is a handler that refuses every tenth record until it is healed.
type picky struct{ healed atomic.Bool }

func (p *picky) handle(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	for _, r := range records {
		if !p.healed.Load() && r.Offset%10 == 0 {
			return bus.PermanentRecord(r, errors.New("too round"))
		}
	}
	return bustest.WriteEffects(ctx, tx, records)
}

func listed(t testing.TB, pool *pgxpool.Pool, filter parked.Filter) (found []parked.Item) {
	t.Helper()
	inSystem(t, pool, func(tx pgx.Tx) (err error) {
		found, err = parked.List(context.Background(), tx, filter, 1000)
		return err
	})
	return found
}

func inSystem(t testing.TB, pool *pgxpool.Pool, do func(pgx.Tx) error) {
	t.Helper()
	testenv.Must(t, pgx.BeginFunc(context.Background(), pool, do))
}

func replay(t testing.TB, pool *pgxpool.Pool, filter parked.Filter, want int64) {
	t.Helper()
	inSystem(t, pool, func(tx pgx.Tx) error {
		n, err := parked.Replay(context.Background(), tx, filter)
		if err == nil && n != want {
			err = fmt.Errorf("asked for %d records, want %d", n, want)
		}
		return err
	})
}

func parkedNow(t testing.TB, pool *pgxpool.Pool, want int) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if n := len(listed(t, pool, parked.Filter{})); n != want {
			return fmt.Errorf("%d records are parked, want %d", n, want)
		}
		return nil
	})
}

// A parked record is listed unchanged. A replay applies it once, or
// keeps it with the newer reason. Discarding leaves only its place.
func TestParkedRecords(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.parked", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 1, nil)
	bustest.Publish(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 0, 30, 1)
	handler := &picky{}
	cfg := bustest.QuickConsumer(brokers, topic, pool, handler.handle)
	cfg.ParkedWatch = 20 * time.Millisecond
	bustest.StartConsumer(t, cfg)
	bustest.Applied(t, pool, 27)
	parkedNow(t, pool, 3)
	first := listed(t, pool, parked.Filter{Group: topic, Topic: topic})[0]
	if r := first.Record; r.Offset != 0 || string(r.Value) != "0" || string(r.Key) != "key-0" || r.Header("ce_id") != "id-0" || r.Topic != topic || r.Time.IsZero() {
		t.Errorf("parked record is %+v", r)
	}
	if first.Reason != "too round" || first.Attempts != 1 || first.Organization != "*" || !first.AskedAt.IsZero() || first.ParkedAt.IsZero() {
		t.Errorf("parked %+v", first)
	}

	ten, twenty := int64(10), int64(20)
	replay(t, pool, parked.Filter{Offset: &ten}, 1)
	testenv.Eventually(t, func() error {
		at := listed(t, pool, parked.Filter{Offset: &ten})[0]
		if at.Attempts != 2 || !at.AskedAt.IsZero() || !at.FailedAt.After(at.ParkedAt) {
			return fmt.Errorf("not tried again: %+v", at)
		}
		return nil
	})
	handler.healed.Store(true)
	replay(t, pool, parked.Filter{Offset: &ten}, 1)
	parkedNow(t, pool, 2)
	bustest.Applied(t, pool, 28)

	inSystem(t, pool, func(tx pgx.Tx) error {
		n, err := parked.Discard(context.Background(), tx, parked.Filter{Offset: &twenty})
		if err == nil && n != 1 {
			err = fmt.Errorf("discarded %d", n)
		}
		return err
	})
	replay(t, pool, parked.Filter{}, 1)
	parkedNow(t, pool, 0)
	bustest.Applied(t, pool, 29)
	onlyThePlaceStays(t, pool, twenty)
}

func onlyThePlaceStays(t testing.TB, pool *pgxpool.Pool, offset int64) {
	t.Helper()
	inSystem(t, pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(context.Background(), tx); err != nil {
			return err
		}
		var left string
		err := tx.QueryRow(context.Background(),
			`SELECT coalesce(string_agg(concat_ws(' ', record_offset, key, value, header_names, header_values), ','), '') FROM bus_parked`).Scan(&left)
		if want := fmt.Sprintf("%d {} {}", offset); err == nil && left != want {
			t.Errorf("parked is %q, want %q", left, want)
		}
		return err
	})
}

// However often partitions are reassigned during a replay, each parked
// record takes effect once.
func TestReplayWhileRebalancing(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.replay", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 6, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	bustest.Publish(t, p, topic, 0, 1200, 60)
	handler := &picky{}
	cfg := bustest.QuickConsumer(brokers, topic, pool, handler.handle)
	cfg.ParkedWatch = 5 * time.Millisecond
	_, stop := bustest.StartConsumer(t, cfg)
	held := 0
	testenv.Eventually(t, func() error {
		held = len(listed(t, pool, parked.Filter{}))
		if n := bustest.Count(t, pool).All + held; n != 1200 {
			return fmt.Errorf("%d applied or parked", n)
		}
		return nil
	})
	handler.healed.Store(true)
	stops := []func(){stop}
	replay(t, pool, parked.Filter{}, int64(held))
	for i := range 8 {
		_, stop := bustest.StartConsumer(t, cfg)
		stops = append(stops, stop)
		bustest.Publish(t, p, topic, 1200+100*i, 100, 60)
		if i%2 == 1 {
			stops[0]()
			stops = stops[1:]
		}
	}
	parkedNow(t, pool, 0)
	bustest.Applied(t, pool, 2000)
}

func TestMain(m *testing.M) { os.Exit(bustest.Main(m)) }
