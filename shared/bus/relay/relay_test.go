package relay_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// outbox is the events table of a relay's user: positions are in the
// order of commits, since writers take turns.
const outbox = `CREATE TABLE outbox (
		position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		writer   int NOT NULL,
		number   int NOT NULL);
	CREATE FUNCTION take_turn() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
	CREATE TRIGGER take_turn BEFORE INSERT ON outbox FOR EACH STATEMENT EXECUTE FUNCTION take_turn()`

func readOutbox(topic string) func(context.Context, pgx.Tx, relay.Cursor, int) ([]relay.Outgoing, error) {
	return func(ctx context.Context, tx pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
		rows, err := tx.Query(ctx, `SELECT position, writer, number FROM outbox WHERE position > $1 ORDER BY position LIMIT $2`, after.Position, limit)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (relay.Outgoing, error) {
			var position int64
			var writer, number int
			err := row.Scan(&position, &writer, &number)
			m := message.NewMessage(fmt.Sprintf("%d-%d", writer, number), nil)
			m.Metadata[bus.KeyMetadata] = fmt.Sprint(writer)
			return relay.Outgoing{Topic: topic, Message: m, Cursor: relay.Cursor{Position: position}}, err
		})
	}
}

// write adds rows to the outbox from several writers at once.
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

// published reads the topic, drops repetitions by id, and checks the
// order of each writer's events.
func published(t testing.TB, brokers []string, topic string, writers int) (distinct, repeated int) {
	next := make(map[string]int)
	for _, r := range bustest.ReadAll(t, brokers, topic) {
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

// Rows of many transactions, in whatever order they end, are published in order
// and without a gap, however often relays start, stop and lose their lease.
func TestRelayPublishesInOrder(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.outbox", bustest.Database(t)
	bustest.Ensure(t, brokers, topic, 1, nil)
	if _, err := pool.Exec(context.Background(), outbox); err != nil {
		t.Fatal(err)
	}
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	cfg := relay.Config{Pool: pool, Name: "test", Publisher: p, Read: readOutbox(topic), Interval: 20 * time.Millisecond, Batch: 7}
	first, second := relay.New(cfg, testenv.Logger(t)), relay.New(cfg, testenv.Logger(t))
	bustest.Run(t, first.Run)
	bustest.Run(t, second.Run)
	bustest.Run(t, func(ctx context.Context) error { // steals the lease repeatedly; without end it would leave no time for a page on a busy machine
		for range 50 {
			pool.Exec(ctx, `UPDATE bus_relays SET owner = '', expires_at = '-infinity', epoch = epoch + 1`)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(10 * time.Millisecond):
			}
		}
		return nil
	})
	write(t, pool, 8, 50, first.Wake)
	testenv.Eventually(t, func() error {
		if distinct, repeated := published(t, brokers, topic, 8); distinct < 400 {
			return fmt.Errorf("%d events published, %d more than once", distinct, repeated)
		}
		return nil
	})
}

// A relay that is rewound, even while it runs, publishes everything
// again, with the same ids.
func TestRelayIsRewound(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.rewound", bustest.Database(t)
	bustest.Ensure(t, brokers, topic, 1, nil)
	if _, err := pool.Exec(context.Background(), outbox); err != nil {
		t.Fatal(err)
	}
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	cfg := relay.Config{Pool: pool, Name: "test", Publisher: p, Read: readOutbox(topic), Interval: 20 * time.Millisecond, Lease: time.Second} // it looks at its lease twice in that time
	r := relay.New(cfg, testenv.Logger(t))
	bustest.Run(t, r.Run)
	write(t, pool, 2, 5, r.Wake)
	twice := func(wantRepeated int) func() error {
		return func() error {
			if distinct, repeated := published(t, brokers, topic, 2); distinct != 10 || repeated < wantRepeated {
				return fmt.Errorf("%d events published, %d more than once", distinct, repeated)
			}
			return nil
		}
	}
	testenv.Eventually(t, twice(0))
	testenv.Eventually(t, func() (err error) { // else the cursor has no way back
		var position int64
		if err = pool.QueryRow(context.Background(), `SELECT position FROM bus_relays`).Scan(&position); err == nil && position < 10 {
			err = fmt.Errorf("the cursor is at %d", position)
		}
		return err
	})
	testenv.Must(t, pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error { return relay.Rewind(context.Background(), tx, "test") }))
	testenv.Eventually(t, twice(10))
}

// Wake publishes at once, long before the interval is over.
func TestRelayWakes(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.wake", bustest.Database(t)
	bustest.Ensure(t, brokers, topic, 1, nil)
	if _, err := pool.Exec(context.Background(), outbox); err != nil {
		t.Fatal(err)
	}
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	r := relay.New(relay.Config{Pool: pool, Name: "test", Publisher: p, Read: readOutbox(topic), Interval: time.Hour}, testenv.Logger(t))
	bustest.Run(t, r.Run)
	write(t, pool, 2, 20, r.Wake)
	testenv.Eventually(t, func() error {
		if distinct, _ := published(t, brokers, topic, 2); distinct < 40 {
			return errors.New("not all published")
		}
		return nil
	})
}

// What others announce is published long before the interval or the lease is
// over, and a look at the outbox follows an announcement, not a clock.
func TestRelayHears(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.hear", bustest.Database(t)
	bustest.Ensure(t, brokers, topic, 1, nil)
	if _, err := pool.Exec(context.Background(), outbox); err != nil {
		t.Fatal(err)
	}
	var looks atomic.Int64
	read := readOutbox(topic)
	r := relay.New(relay.Config{
		Pool: pool, Name: "test", Publisher: bustest.NewPublisher(t, publisher.Config{Brokers: brokers}),
		Interval: time.Millisecond, Lease: time.Hour, Announced: true,
		Read: func(ctx context.Context, tx pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
			looks.Add(1)
			return read(ctx, tx, after, limit)
		},
	}, testenv.Logger(t))
	bustest.Run(t, r.Run)
	const rows = 20
	for n := range rows {
		bustest.InTx(t, pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(context.Background(), `INSERT INTO outbox (writer, number) VALUES (0, $1)`, n)
			if err == nil {
				_, err = tx.Exec(context.Background(), pg.Announce)
			}
			return err
		})
		testenv.Eventually(t, func() error {
			if distinct, _ := published(t, brokers, topic, 1); distinct <= n {
				return fmt.Errorf("%d of %d rows published", distinct, n+1)
			}
			return nil
		})
	}
	if n := looks.Load(); n > 2*rows+2 { // one before the first row, and at most two for each: it may be announced while it is read
		t.Errorf("%d looks at the outbox for %d announced rows", n, rows)
	}
}

// page is a relay's source with all messages from the beginning.
func page(all []relay.Outgoing) func(context.Context, pgx.Tx, relay.Cursor, int) ([]relay.Outgoing, error) {
	return func(_ context.Context, _ pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
		from := 0
		for from < len(all) && all[from].Cursor.Position <= after.Position {
			from++
		}
		return all[from:min(len(all), from+limit)], nil
	}
}

// place returns one message at a position.
func place(topic, id, key string, position int) relay.Outgoing {
	m := message.NewMessage(id, nil)
	m.Metadata[bus.KeyMetadata] = key
	return relay.Outgoing{Topic: topic, Message: m, Cursor: relay.Cursor{Position: int64(position)}}
}

// cursor waits until the relay's cursor is at a position.
func cursor(t testing.TB, pool *pgxpool.Pool, want int64) {
	t.Helper()
	testenv.Eventually(t, func() error {
		var got int64
		err := pool.QueryRow(t.Context(), `SELECT coalesce(max(position), 0) FROM bus_relays`).Scan(&got)
		if err == nil && got != want {
			err = fmt.Errorf("the cursor is at %d, want %d", got, want)
		}
		return err
	})
}

// However slow the answers and mixed the topics, a page is published
// within a lease.
func TestRelayGroupsByTopic(t *testing.T) {
	t.Parallel()
	brokers, pool := kafkatest.Shared(t), bustest.Database(t)
	var all []relay.Outgoing
	for i := range 250 {
		all = append(all, place("test.groups.state", fmt.Sprint("state-", i), "k", i+1), place("test.groups.facts", fmt.Sprint("fact-", i), "k", i+1))
	}
	bustest.Ensure(t, brokers, "test.groups.state", 1, nil)
	bustest.Ensure(t, brokers, "test.groups.facts", 1, nil)
	slow := &bustest.Network{Fault: func(_ *bustest.Network, _ *bustest.BrittleConn, b []byte) error {
		if bustest.IsProduce(b) {
			time.Sleep(20 * time.Millisecond) // the fault is the pace
		}
		return nil
	}}
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, Dialer: slow.Dialer()})
	r := relay.New(relay.Config{Pool: pool, Name: "test", Publisher: p, Read: page(all), Lease: 3 * time.Second}, testenv.Logger(t))
	bustest.Run(t, r.Run)
	cursor(t, pool, 250)
	for topic, kind := range map[string]string{"test.groups.state": "state-", "test.groups.facts": "fact-"} {
		got := bustest.IDs(t, brokers, topic)
		if len(got) != 250 {
			t.Errorf("%d records on %s, want 250", len(got), topic)
		}
		for i, id := range got {
			if id != fmt.Sprint(kind, i) {
				t.Fatalf("record %d of %s is %s", i, topic, id)
			}
		}
	}
}

// An unpublishable message delays those after it, and none before it:
// the cursor stops before the first place with a missing message.
func TestRelayKeepsWhatIsThrough(t *testing.T) {
	t.Parallel()
	large := place("test.through", "large", "k", 4)
	large.Message.Payload = make([]byte, 2<<10)
	for name, all := range map[string][]relay.Outgoing{
		"a topic that is not there": {
			place("test.through", "1", "k", 1), place("test.through", "2", "k", 2), place("test.through", "3", "k", 3),
			place("test.through", "4", "k", 4), place("test.through.nowhere", "4", "k", 4), place("test.through", "5", "k", 5),
		},
		"a message that is too large": {
			place("test.through", "1", "k", 1), place("test.through", "2", "k", 2), place("test.through", "3", "k", 3), large,
		},
	} {
		t.Run(name, func(t *testing.T) {
			brokers, pool := kafkatest.Shared(t), bustest.Database(t)
			bustest.Ensure(t, brokers, "test.through", 1, nil)
			p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, RequestTimeout: 200 * time.Millisecond, MaxMessageBytes: 1 << 10})
			r := relay.New(relay.Config{Pool: pool, Name: "test", Publisher: p, Read: page(all)}, testenv.Logger(t))
			bustest.Run(t, r.Run)
			cursor(t, pool, 3)
		})
	}
}

// Places without a message, however many, do not stop a relay.
func TestRelayPassesWhatHasNoMessage(t *testing.T) {
	t.Parallel()
	brokers, pool := kafkatest.Shared(t), bustest.Database(t)
	bustest.Ensure(t, brokers, "test.silence", 1, nil)
	var all []relay.Outgoing
	for i := range 30 {
		all = append(all, relay.Outgoing{Cursor: relay.Cursor{Position: int64(i + 1)}})
	}
	all = append(all, place("test.silence", "said", "k", 31))
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	r := relay.New(relay.Config{Pool: pool, Name: "test", Publisher: p, Read: page(all), Batch: 10}, testenv.Logger(t))
	bustest.Run(t, r.Run)
	cursor(t, pool, 31)
	if got := bustest.IDs(t, brokers, "test.silence"); len(got) != 1 {
		t.Errorf("published %q", got)
	}
}

// Messages that a relay sent under a lost lease may arrive after those
// of the next relay. The key's last record still becomes the newest
// again, so that compaction keeps no revoked key in force.
func TestRelayPublishesTheNewestLast(t *testing.T) {
	t.Parallel()
	brokers, pool := kafkatest.Shared(t), bustest.Database(t)
	bustest.Ensure(t, brokers, "test.newest", 1, nil)
	sent, arrives := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(sent) })
	late := &bustest.Network{Fault: func(_ *bustest.Network, _ *bustest.BrittleConn, b []byte) error {
		if bustest.IsProduce(b) {
			once()
			<-arrives
		}
		return nil
	}}
	newRelay := func(cfg publisher.Config, all ...relay.Outgoing) *relay.Relay {
		cfg.Brokers = brokers
		return relay.New(relay.Config{
			Pool: pool, Name: "test", Publisher: bustest.NewPublisher(t, cfg), Read: page(all), Interval: 20 * time.Millisecond, Lease: 6 * time.Second,
		}, testenv.Logger(t))
	}
	active, revoked := place("test.newest", "active", "k", 1), place("test.newest", "revoked", "k", 2)
	bustest.Run(t, newRelay(publisher.Config{Dialer: late.Dialer()}, active).Run)
	<-sent
	if _, err := pool.Exec(t.Context(), `UPDATE bus_relays SET expires_at = '-infinity'`); err != nil {
		t.Fatal(err)
	}
	bustest.Run(t, newRelay(publisher.Config{}, active, revoked).Run)
	cursor(t, pool, 2)
	close(arrives)
	testenv.Eventually(t, func() error {
		if got := bustest.IDs(t, brokers, "test.newest"); len(got) < 4 || got[len(got)-1] != "revoked" {
			return fmt.Errorf("the log holds %q", got)
		}
		return nil
	})
}

// A relay whose process dies is replaced at once, however long its
// lease runs; a live one is not, even if it is idle. The dead one's
// messages in flight are published again once its lease is over.
func TestRelayOfADeadProcessIsReplaced(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.livenesslock", bustest.Database(t)
	bustest.Ensure(t, brokers, topic, 1, nil)
	living := takeLease(t, pool, "test")
	all := []relay.Outgoing{place(topic, "0-0", "a", 1), place(topic, "0-1", "a", 2)}
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	next := relay.New(relay.Config{
		Pool: pool, Name: "test", Publisher: p, Read: page(all), Interval: 10 * time.Millisecond, Lease: 2 * time.Second,
	}, testenv.Logger(t))
	bustest.Run(t, next.Run)
	for range 20 { // the next one looks meanwhile, and leaves it alone
		var owner string
		if err := pool.QueryRow(t.Context(), `SELECT owner FROM bus_relays WHERE pg_sleep(0.01) IS NOT NULL`).Scan(&owner); err != nil || owner != "living" {
			t.Fatalf("the relay that lives was replaced by %q, %v", owner, err)
		}
	}
	testenv.Must(t, living.Close(t.Context()))
	testenv.Eventually(t, func() error {
		records := bustest.ReadAll(t, brokers, topic)
		if len(records) < 4 {
			return fmt.Errorf("%d records, want both and then both again", len(records))
		}
		for i, want := range []string{"0-0", "0-1", "0-0", "0-1"} {
			if got := records[i].Header("ce_id"); got != want {
				t.Fatalf("record %d is %s, want %s", i, got, want)
			}
		}
		return nil
	})
}

// takeLease takes the lease for an hour like a relay whose process ends
// when the connection is closed.
func takeLease(t testing.TB, pool *pgxpool.Pool, name string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	testenv.Must(t, err)
	_, err = conn.Exec(t.Context(), `INSERT INTO bus_relays (name, epoch, owner, expires_at) VALUES ($1, 7, 'living', clock_timestamp() + interval '1 hour')`, name)
	if err == nil {
		_, err = conn.Exec(t.Context(), `SELECT pg_advisory_lock(hashtext('weir relay ' || current_schema() || ' ' || $1), hashtext('living'))`, name)
	}
	testenv.Must(t, err)
	return conn
}

func TestMain(m *testing.M) { os.Exit(bustest.Main(m)) }
