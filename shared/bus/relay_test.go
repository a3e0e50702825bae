package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/testenv"
)

// outbox is an events table as a relay's user would have it.
const outbox = `CREATE TABLE outbox (
	position    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
	writer      int NOT NULL,
	number      int NOT NULL)`

func readOutbox(topic string) func(context.Context, pgx.Tx, bus.Cursor, int) ([]bus.Outgoing, error) {
	return func(ctx context.Context, tx pgx.Tx, after bus.Cursor, limit int) ([]bus.Outgoing, error) {
		rows, err := tx.Query(ctx, `SELECT transaction::text::bigint, position, writer, number FROM outbox
			WHERE (transaction, position) > ($1::text::xid8, $2) AND transaction < pg_snapshot_xmin(pg_current_snapshot())
			ORDER BY transaction, position LIMIT $3`, fmt.Sprint(after.Transaction), after.Position, limit)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (bus.Outgoing, error) {
			var transaction, position int64
			var writer, number int
			err := row.Scan(&transaction, &position, &writer, &number)
			m := message.NewMessage(fmt.Sprintf("%d-%d", writer, number), nil)
			m.Metadata[bus.KeyMetadata] = fmt.Sprint(writer)
			return bus.Outgoing{Topic: topic, Message: m, Cursor: bus.Cursor{Transaction: uint64(transaction), Position: position}}, err
		})
	}
}

// write adds rows to the outbox from several writers, some of whose transactions end long after later ones.
func write(t testing.TB, pool *pgxpool.Pool, writers, each int, wake func()) {
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(context.Background(), `INSERT INTO outbox (writer, number) SELECT $1, $2 FROM pg_sleep($3)`, w, n, float64((w+n)%7)/1000)
					return err
				})
				if err != nil {
					t.Error(err)
				}
				wake()
			}
		})
	}
	wg.Wait()
}

// published reads the topic, drops repetitions by id, and checks the order of each writer's events.
func published(t testing.TB, brokers []string, topic string, writers int) (distinct, repeated int) {
	next := make(map[string]int)
	for _, r := range readAll(t, brokers, topic) {
		writer, number, _ := strings.Cut(r.Header("ce_id"), "-")
		want := fmt.Sprint(next[writer])
		switch {
		case number == want:
			next[writer]++
			distinct++
		case len(number) < len(want) || len(number) == len(want) && number < want:
			repeated++
		default:
			t.Fatalf("event %s of writer %s comes before %s", number, writer, want)
		}
	}
	return distinct, repeated
}

// What many transactions write, in whatever order they end, is published in order and without a gap, however relays come and go
// and however often they lose their lease.
func TestRelayPublishesInOrder(t *testing.T) {
	brokers, topic, pool := testenv.Kafka(t), "test.outbox", database(t)
	ensure(t, brokers, topic, 1, nil)
	if _, err := pool.Exec(context.Background(), outbox); err != nil {
		t.Fatal(err)
	}
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	cfg := bus.RelayConfig{Pool: pool, Name: "test", Publisher: p, Read: readOutbox(topic), Interval: 20 * time.Millisecond, Batch: 7}
	first, second := bus.NewRelay(cfg, testenv.Logger(t)), bus.NewRelay(cfg, testenv.Logger(t))
	start(t, first.Run)
	start(t, second.Run)
	start(t, func(ctx context.Context) error { // steals the lease all the time
		for ctx.Err() == nil {
			pool.Exec(ctx, `UPDATE bus_relays SET owner = '', expires_at = '-infinity', epoch = epoch + 1`)
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
		return nil
	})
	write(t, pool, 8, 50, first.Wake)
	testenv.Eventually(t, patience, func() error {
		if distinct, repeated := published(t, brokers, topic, 8); distinct < 400 {
			return fmt.Errorf("%d events published, %d more than once", distinct, repeated)
		}
		return nil
	})
}

// Wake publishes at once, long before the interval is over.
func TestRelayWakes(t *testing.T) {
	brokers, topic, pool := testenv.Kafka(t), "test.wake", database(t)
	ensure(t, brokers, topic, 1, nil)
	if _, err := pool.Exec(context.Background(), outbox); err != nil {
		t.Fatal(err)
	}
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	r := bus.NewRelay(bus.RelayConfig{Pool: pool, Name: "test", Publisher: p, Read: readOutbox(topic), Interval: time.Hour}, testenv.Logger(t))
	start(t, r.Run)
	write(t, pool, 2, 20, r.Wake)
	testenv.Eventually(t, 5*time.Second, func() error {
		if distinct, _ := published(t, brokers, topic, 2); distinct < 40 {
			return errors.New("not all published")
		}
		return nil
	})
}
