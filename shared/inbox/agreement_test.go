package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// A reader is a consumer of weir.logs.v1 that stores the records its
// inbox calls fresh.
type reader struct {
	pool *pgxpool.Pool
	name string
}

func newReader(t *testing.T, name string) *reader {
	t.Helper()
	pool := pgtest.OpenOwned(t, "inboxtest", pg.Partitions(), inbox.Migrations(), bus.Migrations())
	if _, err := pool.Exec(t.Context(), `CREATE TABLE verdicts (event text, verdict int)`); err != nil {
		t.Fatal(err)
	}
	return &reader{pool, name}
}

func (r *reader) consume(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	accepted := make([]contract.LogsAccepted, len(records))
	var err error
	for i, record := range records {
		if accepted[i], err = contract.ParseLogsAccepted(record.Header, record.Value); err != nil {
			return err
		}
	}
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	judged, err := inbox.Filter(ctx, tx, accepted)
	if err != nil {
		return err
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"verdicts"}, []string{"event", "verdict"}, pgx.CopyFromSlice(len(records), func(i int) ([]any, error) {
		return []any{fmt.Sprint(records[i].Partition, "/", records[i].Offset, " ", accepted[i].ID()), int(judged.Verdicts[i])}, nil
	}))
	return err
}

// run reads n records and returns their verdicts, by place in the log.
func (r *reader) run(t *testing.T, brokers []string, lanes consumer.Lanes, n int) (seen []string) {
	t.Helper()
	consumer, err := consumer.New(consumer.Config{
		Brokers: brokers, Group: "test." + r.name, Topic: contract.TopicLogs, Pool: r.pool, Handle: r.consume, Lanes: lanes, MaxRecords: 20,
	}, testenv.Logger(t))
	testenv.Must(t, err)
	testenv.Run(t, consumer.Run)
	testenv.Eventually(t, func() error {
		rows, err := r.pool.Query(t.Context(), `SELECT event || ': ' || verdict FROM verdicts ORDER BY event`)
		if err == nil {
			seen, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err == nil && len(seen) < n {
			err = fmt.Errorf("%d records judged of %d", len(seen), n)
		}
		return err
	})
	return seen
}

// A consumer that defers records of an organization reaches the same
// verdicts as one that reads all in order: which of two requests with
// one Idempotency-Key counts depends only on the order of an
// organization's records in a partition.
func TestDeferredVerdictsAgree(t *testing.T) {
	brokers := kafkatest.Brokers(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	testenv.Must(t, topics.Ensure(ctx, brokers, []contract.Topic{{Name: contract.TopicLogs, Partitions: 3}}))
	publisher, err := publisher.New(publisher.Config{Brokers: brokers}, testenv.Logger(t))
	testenv.Must(t, err)
	defer publisher.Close()
	messages := copies(rand.New(rand.NewPCG(9, 4)), 2000)
	if _, err := publisher.PublishContext(ctx, contract.TopicLogs, messages...); err != nil {
		t.Fatal(err)
	}
	inOrder := newReader(t, "inorder").run(t, brokers, consumer.Lanes{}, len(messages))
	late := newReader(t, "late")
	lanes := consumer.Lanes{Of: func(r bus.Record) string { return r.Header(contract.HeaderOrganization) }, Late: time.Nanosecond}
	if fair := late.run(t, brokers, lanes, len(messages)); !slices.Equal(inOrder, fair) {
		for i := range inOrder {
			if inOrder[i] != fair[i] {
				t.Fatalf("verdicts differ: in order %s, with lanes %s", inOrder[i], fair[i])
			}
		}
	}
	testenv.Eventually(t, func() error {
		var deferred int
		err := late.pool.QueryRow(t.Context(), `SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'bus_deferred'`).Scan(&deferred)
		if err == nil && deferred == 0 {
			err = errors.New("nothing was deferred")
		}
		return err
	})
}

// copies returns requests of a loud organization and some quiet ones:
// many with one of few keys, with one of two bodies, some of them twice.
func copies(random *rand.Rand, n int) (messages []*message.Message) {
	for i := range n {
		organization := fmt.Sprint("org", max(0, random.IntN(8)-5))
		logs := contract.LogsAccepted{
			Batch: fmt.Sprintf("%08x-0000-7000-8000-000000000000", i), Part: 1, Parts: 1, Organization: organization, Project: organization,
			Environment: "prod", Key: "key", Source: "weir/ingest", Time: noon.Add(time.Duration(i) * time.Second), Entries: 1, Bytes: 2, Lines: []byte("{}\n"),
		}
		if random.IntN(3) > 0 {
			logs.Idempotency, logs.Digest = fmt.Sprint(organization, " key ", random.IntN(100)), fmt.Sprint("body ", random.IntN(3))
		}
		for range 1 + random.IntN(2) {
			m := message.NewMessage("", logs.Lines)
			for name, value := range logs.Headers() {
				m.Metadata.Set(name, value)
			}
			m.Metadata.Set(bus.KeyMetadata, logs.RecordKey(8))
			messages = append(messages, m)
		}
	}
	return messages
}
