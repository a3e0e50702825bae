package bus_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

const patience = 30 * time.Second

// ensure makes one topic of a test.
func ensure(t testing.TB, brokers []string, name string, partitions int, config map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := bus.EnsureTopics(ctx, brokers, []contract.Topic{{Name: name, Partitions: partitions, Config: config}}); err != nil {
		t.Fatal(err)
	}
}

func newPublisher(t testing.TB, cfg bus.PublisherConfig) *bus.Publisher {
	t.Helper()
	p, err := bus.NewPublisher(cfg, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// database is a fresh database with the bus's tables.
func database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return databaseAt(t, testenv.Postgres(t))
}

// databaseAt makes the bus's tables in an empty database.
func databaseAt(t testing.TB, url string) *pgxpool.Pool {
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

// keyed makes n messages "0".."n-1", the key of each taken from so many keys.
func keyed(first, n, keys int) []*message.Message {
	messages := make([]*message.Message, n)
	for i := range messages {
		messages[i] = message.NewMessage(fmt.Sprintf("id-%d", first+i), fmt.Appendf(nil, "%d", first+i))
		messages[i].Metadata[bus.KeyMetadata] = fmt.Sprintf("key-%d", (first+i)%keys)
	}
	return messages
}

// start runs fn until the test ends, and waits for it then.
func start(t testing.TB, fn func(context.Context) error) (stop func()) {
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

// readAll reads a topic as a state reader does and returns what was there.
func readAll(t testing.TB, brokers []string, topic string) []bus.Record {
	t.Helper()
	var mu sync.Mutex
	var records []bus.Record
	reader := bus.NewStateReader(bus.StateConfig{Brokers: brokers, Topic: topic, Apply: func(r bus.Record) error {
		mu.Lock()
		defer mu.Unlock()
		records = append(records, r)
		return nil
	}}, testenv.Logger(t))
	stop := start(t, reader.Run)
	defer stop()
	select {
	case <-reader.Ready():
	case <-time.After(patience):
		t.Fatalf("cannot read %q to its end", topic)
	}
	mu.Lock()
	defer mu.Unlock()
	return records
}

// addPartitions raises the number of partitions of a topic to n.
func addPartitions(t testing.TB, brokers []string, topic string, n int32) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: patience}
	res, err := client.CreatePartitions(context.Background(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: n}}})
	if err == nil {
		err = res.Errors[topic]
	}
	if err != nil {
		t.Fatal(err)
	}
}

// freePort is a port that nobody listens on now.
func freePort(t testing.TB) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}
