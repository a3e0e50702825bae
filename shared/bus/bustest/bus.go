package bustest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

const Timeout = 30 * time.Second

// Ensure creates one topic of a test.
func Ensure(t testing.TB, brokers []string, name string, partitions int, config map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	if err := topics.Ensure(ctx, brokers, []contract.Topic{{Name: name, Partitions: partitions, Config: config}}); err != nil {
		t.Fatal(err)
	}
}

func NewPublisher(t testing.TB, cfg publisher.Config) *publisher.Publisher {
	t.Helper()
	p, err := publisher.New(cfg, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// Database returns a new database with the bus's tables.
func Database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return DatabaseAt(t, postgrestest.URL(t))
}

// DatabaseAt creates the bus's tables in an empty database.
func DatabaseAt(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	ctx := context.Background()
	pool, err := pg.Open(ctx, url, "bus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := pg.Migrate(ctx, pool, "bus", bus.Migrations()); err != nil {
		t.Fatal(err)
	}
	return pool
}

// Keyed returns n messages "0".."n-1" whose keys are taken from so many.
func Keyed(first, n, keys int) []*message.Message {
	messages := make([]*message.Message, n)
	for i := range messages {
		messages[i] = message.NewMessage(fmt.Sprintf("id-%d", first+i), fmt.Appendf(nil, "%d", first+i))
		messages[i].Metadata[bus.KeyMetadata] = fmt.Sprintf("key-%d", (first+i)%keys)
	}
	return messages
}

// Run runs fn until the test ends, and waits for its return.
func Run(t testing.TB, fn func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := fn(ctx); err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	stop = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// ReadAll reads a topic to its end as a state reader does.
func ReadAll(t testing.TB, brokers []string, topic string) []bus.Record {
	t.Helper()
	var mu sync.Mutex
	var records []bus.Record
	reader := state.NewReader(state.Config{Brokers: brokers, Topic: topic, Apply: func(r bus.Record) error {
		mu.Lock()
		defer mu.Unlock()
		records = append(records, r)
		return nil
	}}, testenv.Logger(t))
	stop := Run(t, reader.Run)
	defer stop()
	select {
	case <-reader.Ready():
	case <-time.After(Timeout):
		t.Fatalf("cannot read %q to its end", topic)
	}
	mu.Lock()
	defer mu.Unlock()
	return records
}
