package bus_test

import (
	"context"
	"fmt"
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
