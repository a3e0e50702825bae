package bustest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
)

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
	if err != nil {
		t.Fatal(err)
	}
	return positions
}

// WereDeferred fails if no record was ever deferred, or some still are.
func WereDeferred(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	testenv.Eventually(t, Timeout, func() error {
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := pgx.BeginFunc(context.Background(), pool, fn); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	partition := kmsg.NewDeleteRecordsRequestTopicPartition()
	partition.Partition, partition.Offset = int32(number), offset //nolint:gosec // of a topic
	asked := kmsg.NewDeleteRecordsRequestTopic()
	asked.Topic, asked.Partitions = topic, append(asked.Partitions, partition)
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.Topics, request.TimeoutMillis = append(request.Topics, asked), 5000
	answer, err := request.RequestWith(context.Background(), client)
	if err != nil || len(answer.Topics) != 1 || answer.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("cannot cut the log: %+v, %v", answer, err)
	}
}
