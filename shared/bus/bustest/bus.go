package bustest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// Ensure creates one topic of a test.
func Ensure(t testing.TB, brokers []string, name string, partitions int, config map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	testenv.Must(t, topics.Ensure(ctx, brokers, []contract.Topic{{Name: name, Partitions: partitions, Config: config}}))
}

func NewPublisher(t testing.TB, cfg publisher.Config) *publisher.Publisher {
	t.Helper()
	p, err := publisher.New(cfg, testenv.Logger(t))
	testenv.Must(t, err)
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
	testenv.Must(t, err)
	t.Cleanup(pool.Close)
	testenv.Must(t, pg.Migrate(ctx, pool, "bus", bus.Migrations()))
	return pool
}

// MarksKept waits until the database knows that a state topic was read to
// its end: a process that stops tries to tell it once only.
func MarksKept(t testing.TB, pool *pgxpool.Pool, brokers []string, topic string) {
	t.Helper()
	log := logrange.Reader{Brokers: brokers, Topic: topic}
	testenv.Eventually(t, func() error {
		_, bounds, err := log.Bounds(t.Context())
		if err != nil {
			return err
		}
		for partition, b := range bounds {
			var next int64
			if err := pool.QueryRow(t.Context(), `SELECT COALESCE(max(last_offset) + 1, 0) FROM bus_read WHERE topic = $1 AND partition = $2`,
				topic, partition).Scan(&next); err != nil || next < b.End {
				return fmt.Errorf("partition %d of %s was read to %d of %d: %w", partition, topic, next, b.End, err)
			}
		}
		return nil
	})
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
	case <-time.After(testenv.Patience):
		t.Fatalf("cannot read %q to its end", topic)
	}
	mu.Lock()
	defer mu.Unlock()
	return records
}

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
	testenv.Must(t, err)
	return a
}

// Applied waits until n effects are there, each once.
func Applied(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	testenv.Eventually(t, func() error {
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
		Brokers: brokers, Group: topic, Topic: topic, Pool: pool, Handle: handle, Tuning: consumer.Tuning{
			HeartbeatInterval: 100 * time.Millisecond, SessionTimeout: 6 * time.Second, RebalanceTimeout: 3 * time.Second,
			JoinBackoff: 50 * time.Millisecond, PartitionWatch: 300 * time.Millisecond,
		},
	}
}

func StartConsumer(t testing.TB, cfg consumer.Config) (*consumer.Consumer, func()) {
	t.Helper()
	c, err := consumer.New(cfg, testenv.Logger(t))
	testenv.Must(t, err)
	return c, Run(t, c.Run)
}

// NotReady waits until a consumer isn't, for that reason.
func NotReady(t testing.TB, c *consumer.Consumer, reason string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if err := c.Ready(); err == nil || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("not %q: %w", reason, err)
		}
		return nil
	})
}

func Publish(t testing.TB, p *publisher.Publisher, topic string, first, n, keys int) []bus.Position {
	t.Helper()
	positions, err := p.PublishContext(context.Background(), topic, Keyed(first, n, keys)...)
	testenv.Must(t, err)
	return positions
}

// Strict always holds every lane to its share.
var Strict = consumer.Lanes{Of: LaneOf, Late: time.Nanosecond}

// OfLane returns n messages of one organization, all for one partition.
func OfLane(lane string, first, n int) []*message.Message {
	messages := Keyed(first, n, 1)
	for _, m := range messages {
		m.UUID = lane + "-" + m.UUID
		m.Metadata["ce_organization"] = lane
	}
	return messages
}

// OfLanes returns n messages, most of one organization, the rest of
// a few others.
func OfLanes(random *rand.Rand, first, n int) []*message.Message {
	messages := Keyed(first, n, 40)
	for _, m := range messages {
		m.Metadata["ce_organization"] = fmt.Sprint("lane-", max(0, random.IntN(8)-3))
	}
	return messages
}

func PublishAll(t testing.TB, brokers []string, topic string, messages ...*message.Message) []bus.Position {
	t.Helper()
	positions, err := NewPublisher(t, publisher.Config{Brokers: brokers}).PublishContext(context.Background(), topic, messages...)
	testenv.Must(t, err)
	return positions
}

// WereDeferred fails if no record was ever deferred, or some still are.
func WereDeferred(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	testenv.Eventually(t, func() error {
		var left, ever int
		err := pool.QueryRow(context.Background(), `SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'bus_deferred'`).Scan(&ever)
		if err == nil && ever == 0 {
			err = errors.New("nothing was ever deferred")
		}
		if err == nil {
			left, err = Deferred(pool)
		}
		if err == nil && left > 0 {
			err = fmt.Errorf("%d lanes are still behind", left)
		}
		return err
	})
}

// Deferred counts the lanes that are behind.
func Deferred(pool *pgxpool.Pool) (n int, err error) {
	err = pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), `SELECT set_config('weir.organization', '*', true)`); err != nil {
			return err
		}
		return tx.QueryRow(context.Background(), `SELECT count(*) FROM bus_deferred`).Scan(&n)
	})
	return n, err
}

// Before counts the effects before a record's first one.
func Before(t testing.TB, pool *pgxpool.Pool, id string) (n int) {
	t.Helper()
	err := pool.QueryRow(context.Background(), `SELECT count(*) FROM effects WHERE n < (SELECT min(n) FROM effects WHERE id = $1)`, id).Scan(&n)
	testenv.Must(t, err)
	return n
}

// InOrder fails if records of one lane in one partition took effect
// in another order.
func InOrder(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	if a := Count(t, pool); a.OutOfOrder > 0 {
		t.Errorf("%d records applied after later ones of their lane", a.OutOfOrder)
	}
}

func InTx(t testing.TB, pool *pgxpool.Pool, fn func(pgx.Tx) error) {
	t.Helper()
	testenv.Must(t, pgx.BeginFunc(context.Background(), pool, fn))
}

// AsSystem executes a statement with the rows of all lanes visible.
func AsSystem(t testing.TB, pool *pgxpool.Pool, statement string, args ...any) {
	t.Helper()
	InTx(t, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), `SELECT set_config('weir.organization', '*', true)`); err != nil {
			return err
		}
		_, err := tx.Exec(context.Background(), statement, args...)
		return err
	})
}

// LeaveBehind defers a lane's first records of a partition.
func LeaveBehind(t testing.TB, pool *pgxpool.Pool, lane string, last int64) {
	t.Helper()
	AsSystem(t, pool, `INSERT INTO bus_deferred
		SELECT $1, group_name, topic, partition, topic_id, 0, $2::bigint, $2::bigint + 1, 1000, now() FROM bus_positions WHERE partition = 0`, lane, last)
}

// CutLog deletes what is before an offset of partition 0, as retention does.
func CutLog(t testing.TB, brokers []string, topic string, offset int64) {
	t.Helper()
	CutPartition(t, brokers, topic, 0, offset)
}

// CutPartition is CutLog for any partition.
func CutPartition(t testing.TB, brokers []string, topic string, number int, offset int64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	testenv.Must(t, err)
	defer client.Close()
	partition := kmsg.NewDeleteRecordsRequestTopicPartition()
	partition.Partition, partition.Offset = int32(number), offset //nolint:gosec // of a topic
	asked := kmsg.NewDeleteRecordsRequestTopic()
	asked.Topic, asked.Partitions = topic, append(asked.Partitions, partition)
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.Topics, request.TimeoutMillis = append(request.Topics, asked), int32(testenv.Patience.Milliseconds())
	answer, err := request.RequestWith(context.Background(), client)
	if err != nil || len(answer.Topics) != 1 || answer.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("cannot cut the log: %+v, %v", answer, err)
	}
}

// Main runs the tests of a package, more in parallel than there are
// processors unless a flag sets it: most wait for session timeouts and
// restarts of servers.
func Main(m *testing.M) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)+1)); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// Shows waits until a scrape contains these lines.
func Shows(t testing.TB, registry *telemetry.Registry, lines ...string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		scrape := httptest.NewRecorder()
		registry.Handler().ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, line := range lines {
			if !strings.Contains(scrape.Body.String(), line+"\n") {
				return fmt.Errorf("%q is missing in\n%s", line, scrape.Body)
			}
		}
		return nil
	})
}
