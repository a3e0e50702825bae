package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/testenv"
)

// picky is a handler that refuses every tenth record until it is healed.
type picky struct{ healed atomic.Bool }

func (p *picky) handle(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	for _, r := range records {
		if !p.healed.Load() && r.Offset%10 == 0 {
			return bus.PermanentRecord(r, errors.New("too round"))
		}
	}
	return writeEffects(ctx, tx, records)
}

func listed(t testing.TB, pool *pgxpool.Pool, filter bus.ParkedFilter) (found []bus.Parked) {
	t.Helper()
	inSystem(t, pool, func(tx pgx.Tx) (err error) {
		found, err = bus.ListParked(context.Background(), tx, filter, 1000)
		return err
	})
	return found
}

func inSystem(t testing.TB, pool *pgxpool.Pool, do func(pgx.Tx) error) {
	t.Helper()
	if err := pgx.BeginFunc(context.Background(), pool, do); err != nil {
		t.Fatal(err)
	}
}

func replay(t testing.TB, pool *pgxpool.Pool, filter bus.ParkedFilter, want int64) {
	t.Helper()
	inSystem(t, pool, func(tx pgx.Tx) error {
		n, err := bus.ReplayParked(context.Background(), tx, filter)
		if err == nil && n != want {
			err = fmt.Errorf("asked for %d records, want %d", n, want)
		}
		return err
	})
}

func parkedNow(t testing.TB, pool *pgxpool.Pool, want int) {
	t.Helper()
	testenv.Eventually(t, patience, func() error {
		if n := len(listed(t, pool, bus.ParkedFilter{})); n != want {
			return fmt.Errorf("%d records are parked, want %d", n, want)
		}
		return nil
	})
}

// A parked record is listed as it was, is applied once when it is asked for and can be, stays with the newer reason when it can't,
// and goes for good when it is discarded.
func TestParkedRecords(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.parked", database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 1, nil)
	publish(t, newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 0, 30, 1)
	handler := &picky{}
	cfg := quick(brokers, topic, pool, handler.handle)
	cfg.ParkedWatch = 20 * time.Millisecond
	startConsumer(t, cfg)
	applied(t, pool, 27, patience)
	parkedNow(t, pool, 3)
	first := listed(t, pool, bus.ParkedFilter{Group: topic, Topic: topic})[0]
	if r := first.Record; r.Offset != 0 || string(r.Value) != "0" || string(r.Key) != "key-0" || r.Header("ce_id") != "id-0" || r.Topic != topic || r.Time.IsZero() {
		t.Errorf("parked record is %+v", r)
	}
	if first.Reason != "too round" || first.Attempts != 1 || first.Organization != "*" || !first.AskedAt.IsZero() || first.ParkedAt.IsZero() {
		t.Errorf("parked %+v", first)
	}

	ten, twenty := int64(10), int64(20)
	replay(t, pool, bus.ParkedFilter{Offset: &ten}, 1)
	testenv.Eventually(t, patience, func() error {
		at := listed(t, pool, bus.ParkedFilter{Offset: &ten})[0]
		if at.Attempts != 2 || !at.AskedAt.IsZero() || !at.FailedAt.After(at.ParkedAt) {
			return fmt.Errorf("not tried again: %+v", at)
		}
		return nil
	})
	handler.healed.Store(true)
	replay(t, pool, bus.ParkedFilter{Offset: &ten}, 1)
	parkedNow(t, pool, 2)
	applied(t, pool, 28, patience)

	inSystem(t, pool, func(tx pgx.Tx) error {
		n, err := bus.DiscardParked(context.Background(), tx, bus.ParkedFilter{Offset: &twenty})
		if err == nil && n != 1 {
			err = fmt.Errorf("discarded %d", n)
		}
		return err
	})
	replay(t, pool, bus.ParkedFilter{}, 1)
	parkedNow(t, pool, 0)
	applied(t, pool, 29, patience)
}

// However often partitions change hands while parked records are applied: each takes effect once.
func TestReplayWhileRebalancing(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.replay", database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 6, nil)
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	publish(t, p, topic, 0, 1200, 60)
	handler := &picky{}
	cfg := quick(brokers, topic, pool, handler.handle)
	cfg.ParkedWatch = 5 * time.Millisecond
	_, stop := startConsumer(t, cfg)
	held := 0
	testenv.Eventually(t, patience, func() error {
		held = len(listed(t, pool, bus.ParkedFilter{}))
		if n := count(t, pool).all + held; n != 1200 {
			return fmt.Errorf("%d applied or parked", n)
		}
		return nil
	})
	handler.healed.Store(true)
	stops := []func(){stop}
	replay(t, pool, bus.ParkedFilter{}, int64(held))
	for i := range 8 {
		_, stop := startConsumer(t, cfg)
		stops = append(stops, stop)
		publish(t, p, topic, 1200+100*i, 100, 60)
		if i%2 == 1 {
			stops[0]()
			stops = stops[1:]
		}
	}
	parkedNow(t, pool, 0)
	applied(t, pool, 2000, patience)
}
