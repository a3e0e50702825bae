package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	watermillkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/pg"
)

const consumed = "test.bench.consume"

// consuming measures readers that count messages from the beginning of a
// topic, then the bus's consumer into a database.
func consuming(table measure.Table, brokers []string, database string, reached *goals) error {
	ctx := context.Background()
	const n, few, size = 400_000, 5_000, 1 << 10
	if err := fill(ctx, brokers, n, size); err != nil {
		return fmt.Errorf("cannot fill the topic: %w", err)
	}
	pool, err := prepare(ctx, database)
	if err != nil {
		return fmt.Errorf("cannot prepare the database: %w", err)
	}
	defer pool.Close()
	rates := map[string]float64{}
	read := func(name string, n int64, by reader) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		var all atomic.Int64
		found, err := used(size, func() (int64, error) {
			err := by(ctx, brokers, func(messages int) {
				if all.Add(int64(messages)) >= n {
					cancel()
				}
			})
			if all.Load() >= n {
				err = nil // however it ended
			}
			return all.Load(), err
		})
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			return
		}
		found.row(table, name, size)
		rates[name] = found[rate]
	}
	table.Row(fmt.Sprintf("consume, %d messages of %d bytes, counted only", n, size), "messages/s", "MB/s", "CPU s/GB", "allocs/msg", "")
	read("bus StateReader", n, readState)
	read("franz-go", n, readFranz)
	read("kafka-go Reader, one a partition", n, readKafkaGo)
	read("watermill-kafka, no group", n, readWatermill)
	table.Row("consume into Postgres, exactly once: a row per message by COPY, positions in the same transaction")
	read("bus Consumer", n, into(pool, "batch", 0))
	read("bus, a transaction a message", few, into(pool, "single", 1))
	if singles := rates["bus, a transaction a message"]; singles > 0 {
		reached.atLeast(rates["bus Consumer"]/singles, "times a transaction per message's messages/s, batches into Postgres", 20)
	}
	return nil
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

// A reader reads messages from the beginning of the topic, and says how many
// it has seen, until ctx ends.
type reader func(ctx context.Context, brokers []string, seen func(messages int)) error

func readState(ctx context.Context, brokers []string, seen func(int)) error {
	return state.NewReader(state.Config{Brokers: brokers, Topic: consumed, Apply: func(bus.Record) error {
		seen(1)
		return nil
	}}, slog.New(slog.DiscardHandler)).Run(ctx)
}

func readFranz(ctx context.Context, brokers []string, seen func(int)) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(consumed), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer c.Close()
	for ctx.Err() == nil {
		fetches := c.PollFetches(ctx)
		fetches.EachRecord(func(*kgo.Record) { seen(1) })
	}
	return ctx.Err()
}

func readKafkaGo(ctx context.Context, brokers []string, seen func(int)) error {
	var reading errgroup.Group
	for p := range partitions {
		r := kafkago.NewReader(kafkago.ReaderConfig{Brokers: brokers, Topic: consumed, Partition: p, MinBytes: 1, MaxBytes: 4 << 20, QueueCapacity: 1000})
		reading.Go(func() error {
			defer r.Close()
			for {
				if _, err := r.ReadMessage(ctx); err != nil {
					return err
				}
				seen(1)
			}
		})
	}
	return reading.Wait()
}

func readWatermill(ctx context.Context, brokers []string, seen func(int)) error {
	settings := watermillkafka.DefaultSaramaSubscriberConfig()
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	s, err := watermillkafka.NewSubscriber(watermillkafka.SubscriberConfig{Brokers: brokers, Unmarshaler: watermillkafka.DefaultMarshaler{},
		OverwriteSaramaConfig: settings}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	defer s.Close()
	messages, err := s.Subscribe(ctx, consumed)
	for err == nil {
		select {
		case m, more := <-messages:
			if !more {
				return ctx.Err()
			}
			m.Ack()
			seen(1)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
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
func into(pool *pgxpool.Pool, group string, most int) reader {
	return func(ctx context.Context, brokers []string, seen func(int)) error {
		c, err := consumer.New(consumer.Config{
			Brokers: brokers, Group: "test.bench." + group, Topic: consumed, Pool: pool, MaxRecords: most, MaxWait: time.Millisecond,
			Handle: insert, Committed: func(records []bus.Record) { seen(len(records)) },
		}, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		return c.Run(ctx)
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
