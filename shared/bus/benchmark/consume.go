package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	watermillkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/pg"
)

const consumed = "test.bench.consume"

// reader reads the topic from its beginning, counts, and returns
// after n messages.
type reader struct {
	name     string
	settings string
	read     func(ctx context.Context, brokers []string, n int64) (int64, error)
}

func consuming(brokers []string, database string, reached *goals) {
	ctx := context.Background()
	const n, size = 400_000, 1 << 10
	if err := fill(ctx, brokers, n, size); err != nil {
		fmt.Fprintln(os.Stderr, "cannot fill the topic:", err)
		return
	}
	fmt.Printf("consume, %d messages of %d bytes, counted only\n", n, size)
	fmt.Printf("  %-28s %10s %8s %10s %12s\n", "client", "messages/s", "MB/s", "CPU s/GB", "allocs/msg")
	for _, c := range []reader{
		{"bus StateReader", "", readState}, {"franz-go", "", readFranz}, {"kafka-go Reader", "a reader per partition, MaxBytes 4 MB", readKafkaGo},
		{"watermill-kafka", "no group", readWatermill},
	} {
		time1(ctx, c, brokers, n, size)
	}
	pool, err := prepare(ctx, database)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot prepare the database:", err)
		return
	}
	defer pool.Close()
	fmt.Printf("\nconsume into Postgres, exactly once: a row per message by COPY, positions in the same transaction\n")
	batches := time1(ctx, reader{"bus Consumer", "defaults", into(pool, "batch", 0)}, brokers, n, size)
	singles := time1(ctx, reader{"bus, a transaction a message", "MaxRecords 1", into(pool, "single", 1)}, brokers, 5_000, size)
	fmt.Println()
	if singles > 0 {
		reached.ratio("times a transaction per message's messages/s, batches into Postgres", batches/singles, 20, false)
	}
}

func fill(ctx context.Context, brokers []string, n, size int) error {
	p, err := publisher.New(publisher.Config{Brokers: brokers}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer p.Close()
	value := payload(size)
	for sent := 0; sent < n; sent += 1000 {
		messages := make([]*message.Message, 1000)
		for i := range messages {
			messages[i] = message.NewMessage(watermill.NewUUID(), value)
			messages[i].Metadata[bus.KeyMetadata] = fmt.Sprint(sent + i)
		}
		if err := p.Publish(consumed, messages...); err != nil {
			return err
		}
	}
	return nil
}

// time1 measures one reader and returns its messages/s, 0 if it failed.
func time1(ctx context.Context, c reader, brokers []string, n int64, size int) float64 {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	runtime.GC()
	before := used()
	seen, err := c.read(ctx, brokers, n)
	after := used()
	if err != nil && seen < n {
		fmt.Printf("  %-28s %d of %d: %v\n", c.name, seen, n, err)
		return 0
	}
	wall, bytes := after.at.Sub(before.at).Seconds(), float64(seen)*float64(size)
	fmt.Printf("  %-28s %10.0f %8.1f %10.2f %12.1f   %s\n", c.name, float64(seen)/wall, bytes/wall/1e6, (after.cpu-before.cpu).Seconds()/(bytes/1e9),
		float64(after.allocs-before.allocs)/float64(seen), c.settings)
	return float64(seen) / wall
}

func readState(ctx context.Context, brokers []string, n int64) (seen int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := state.NewReader(state.Config{Brokers: brokers, Topic: consumed, Apply: func(bus.Record) error {
		if seen++; seen == n {
			cancel()
		}
		return nil
	}}, slog.New(slog.DiscardHandler))
	err = r.Run(ctx)
	return seen, err
}

func readFranz(ctx context.Context, brokers []string, n int64) (seen int64, err error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(consumed), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for seen < n && ctx.Err() == nil {
		fetches := c.PollFetches(ctx)
		fetches.EachRecord(func(*kgo.Record) { seen++ })
	}
	return seen, ctx.Err()
}

func readKafkaGo(ctx context.Context, brokers []string, n int64) (int64, error) {
	var seen atomic.Int64
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, partitions)
	for p := range partitions {
		r := kafkago.NewReader(kafkago.ReaderConfig{Brokers: brokers, Topic: consumed, Partition: p, MinBytes: 1, MaxBytes: 4 << 20, QueueCapacity: 1000})
		go func() {
			defer r.Close()
			for {
				if _, err := r.ReadMessage(ctx); err != nil {
					done <- err
					return
				}
				if seen.Add(1) == n {
					cancel()
				}
			}
		}()
	}
	var err error
	for range partitions {
		err = <-done
	}
	return seen.Load(), err
}

func readWatermill(ctx context.Context, brokers []string, n int64) (seen int64, err error) {
	s, err := watermillkafka.NewSubscriber(watermillkafka.SubscriberConfig{Brokers: brokers, Unmarshaler: watermillkafka.DefaultMarshaler{},
		OverwriteSaramaConfig: saramaFromStart()}, watermill.NopLogger{})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	messages, err := s.Subscribe(ctx, consumed)
	if err != nil {
		return 0, err
	}
	for seen < n {
		select {
		case m := <-messages:
			m.Ack()
			seen++
		case <-ctx.Done():
			return seen, ctx.Err()
		}
	}
	return seen, nil
}

// prepare creates an empty database of an ordinary role: no other may
// use the bus's tables.
func prepare(ctx context.Context, admin string) (*pgxpool.Pool, error) {
	const name = "weir_bench_bus"
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	for _, statement := range []string{
		"DROP DATABASE IF EXISTS " + name, "DROP ROLE IF EXISTS " + name, "CREATE ROLE " + name + " LOGIN PASSWORD '" + name + "'", "CREATE DATABASE " + name + " OWNER " + name,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	own, err := url.Parse(admin)
	if err != nil {
		return nil, err
	}
	own.User, own.Path = url.UserPassword(name, name), "/"+name
	pool, err := pg.Open(ctx, own.String(), "bench")
	if err != nil {
		return nil, err
	}
	if err := pg.Migrate(ctx, pool, "bench", bus.Migrations()); err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, `CREATE TABLE rows (id text, partition int, record_offset bigint, size int)`)
	return pool, err
}

// into returns a reader that writes messages to the database, at most
// so many in one transaction.
func into(pool *pgxpool.Pool, group string, most int) func(context.Context, []string, int64) (int64, error) {
	return func(ctx context.Context, brokers []string, n int64) (int64, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var seen atomic.Int64
		c, err := consumer.New(consumer.Config{
			Brokers: brokers, Group: "test.bench." + group, Topic: consumed, Pool: pool, MaxRecords: most, MaxWait: time.Millisecond,
			Handle: insert, Committed: func(records []bus.Record) {
				if seen.Add(int64(len(records))) >= n {
					cancel()
				}
			},
		}, slog.New(slog.DiscardHandler))
		if err != nil {
			return 0, err
		}
		err = c.Run(ctx)
		return seen.Load(), errors.Join(err, io.EOF)
	}
}

func insert(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"rows"}, []string{"id", "partition", "record_offset", "size"},
		pgx.CopyFromSlice(len(records), func(i int) ([]any, error) {
			r := &records[i]
			return []any{r.Header("ce_id"), r.Partition, r.Offset, len(r.Value)}, nil
		}))
	return err
}
