package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

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
	bustest.Applied(t, pool, n-1, bustest.Timeout)
	testenv.Eventually(t, bustest.Timeout, c.Ready)
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
	if err != nil {
		t.Fatal(err)
	}
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
	bustest.Applied(t, pool, n-1, bustest.Timeout)
	testenv.Eventually(t, bustest.Timeout, c.Ready)
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
