package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/testenv"
)

// A consumer of a topic whose owner publishes again what it loses goes
// back to the start of a log that lost its end, or was recreated: while
// it runs, and at a start where the log has grown beyond its position.
// It ends up with everything that the log has, and is ready.
func TestRereads(t *testing.T) {
	t.Parallel()
	f, pool, topic := bustest.NewForgetful(t), bustest.Database(t), "test.reread"
	if _, err := pool.Exec(t.Context(), `CREATE TABLE seen (id text PRIMARY KEY)`); err != nil {
		t.Fatal(err)
	}
	bustest.Ensure(t, f.Brokers(), topic, 1, map[string]string{"cleanup.policy": "compact"})
	cfg := bustest.QuickConsumer(f.Brokers(), topic, pool, func(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
		for _, r := range records {
			if _, err := tx.Exec(ctx, `INSERT INTO seen VALUES ($1) ON CONFLICT DO NOTHING`, r.Header(bus.HeaderID)); err != nil {
				return err
			}
		}
		return nil
	})
	cfg.Rereads = true
	applied := func(want ...string) {
		t.Helper()
		testenv.Eventually(t, bustest.Timeout, func() error {
			rows, err := pool.Query(t.Context(), `SELECT id FROM seen ORDER BY id`)
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err == nil && !slices.Equal(ids, want) {
				err = fmt.Errorf("applied %q, want %q", ids, want)
			}
			return err
		})
	}
	publish := func(first, n int) { bustest.PublishAll(t, f.Brokers(), topic, bustest.Keyed(first, n, 1000)...) }

	publish(10, 3)
	f.Remember()
	c, stop := bustest.StartConsumer(t, cfg)
	publish(13, 3)
	applied("id-10", "id-11", "id-12", "id-13", "id-14", "id-15")
	f.Forget(func() {}) // while it runs
	publish(20, 1)
	applied("id-10", "id-11", "id-12", "id-13", "id-14", "id-15", "id-20")
	testenv.Eventually(t, bustest.Timeout, c.Ready)
	stop()

	f.Forget(func() {})
	publish(30, 4) // beyond the position
	c, stop = bustest.StartConsumer(t, cfg)
	applied("id-10", "id-11", "id-12", "id-13", "id-14", "id-15", "id-20", "id-30", "id-31", "id-32", "id-33")
	testenv.Eventually(t, bustest.Timeout, c.Ready)
	stop()

	bustest.ReplaceTopic(t, f.Brokers(), topic, 1, nil)
	publish(40, 1)
	c, _ = bustest.StartConsumer(t, cfg)
	applied("id-10", "id-11", "id-12", "id-13", "id-14", "id-15", "id-20", "id-30", "id-31", "id-32", "id-33", "id-40")
	testenv.Eventually(t, bustest.Timeout, c.Ready)
}
