package bustest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
)

// Effects creates the table in which handlers of tests record what they
// applied. It has no unique key: a record applied twice is there twice.
func Effects(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), `CREATE TABLE effects
		(n bigint GENERATED ALWAYS AS IDENTITY, id text, lane text, partition int, record_offset bigint)`); err != nil {
		t.Fatal(err)
	}
}

// WriteEffects is a handler that inserts each record.
func WriteEffects(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"id", "lane", "partition", "record_offset"},
		pgx.CopyFromSlice(len(records), func(i int) ([]any, error) {
			r := records[i]
			return []any{r.Header("ce_id"), LaneOf(r), r.Partition, r.Offset}, nil
		}))
	return err
}

// LaneOf returns a record's lane.
func LaneOf(r bus.Record) string { return r.Header("ce_organization") }

// Account is what a test finds in effects.
type Account struct{ All, Distinct, OutOfOrder int }

func Count(t testing.TB, pool *pgxpool.Pool) Account {
	t.Helper()
	var a Account
	err := pool.QueryRow(context.Background(), `
		SELECT count(*), count(DISTINCT (partition, record_offset)), count(*) FILTER (WHERE record_offset < before)
		  FROM (SELECT *, lag(record_offset) OVER (PARTITION BY partition, lane ORDER BY n) AS before FROM effects) e`).Scan(&a.All, &a.Distinct, &a.OutOfOrder)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Applied waits until n effects are there, each once.
func Applied(t testing.TB, pool *pgxpool.Pool, n int, within time.Duration) {
	t.Helper()
	testenv.Eventually(t, within, func() error {
		if a := Count(t, pool); a.All < n {
			return fmt.Errorf("%d of %d records applied", a.All, n)
		}
		return nil
	})
	if a := Count(t, pool); a.All != n || a.Distinct != n {
		t.Fatalf("%d effects of %d records, want %d of each", a.All, a.Distinct, n)
	}
}

// QuickConsumer configures a consumer that notices rebalances fast, in
// a group named as its topic.
func QuickConsumer(brokers []string, topic string, pool *pgxpool.Pool, handle consumer.Handler) consumer.Config {
	return consumer.Config{
		Brokers: brokers, Group: topic, Topic: topic, Pool: pool, Handle: handle, HeartbeatInterval: 100 * time.Millisecond,
		SessionTimeout: 6 * time.Second, RebalanceTimeout: 3 * time.Second, JoinBackoff: 50 * time.Millisecond, PartitionWatch: 300 * time.Millisecond,
	}
}

func StartConsumer(t testing.TB, cfg consumer.Config) (*consumer.Consumer, func()) {
	t.Helper()
	c, err := consumer.New(cfg, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	return c, Run(t, c.Run)
}

// NotReady waits until a consumer isn't, for that reason.
func NotReady(t testing.TB, c *consumer.Consumer, reason string) {
	t.Helper()
	testenv.Eventually(t, Timeout, func() error {
		if err := c.Ready(); err == nil || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("not %q: %w", reason, err)
		}
		return nil
	})
}

func Publish(t testing.TB, p *publisher.Publisher, topic string, first, n, keys int) []bus.Position {
	t.Helper()
	positions, err := p.PublishContext(context.Background(), topic, Keyed(first, n, keys)...)
	if err != nil {
		t.Fatal(err)
	}
	return positions
}
