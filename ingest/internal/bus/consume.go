package bus

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
)

// A LogStore stores the entries of weir.logs.v1, each once,
// under its organization and project.
type LogStore struct {
	Store *postgres.Store
	NewID func() string // makes the UUIDs of blocks; safe for concurrent use
}

// Lanes keep organizations from waiting for each other.
func Lanes() consumer.Lanes { return consumer.Lanes{Of: organization} }

func organization(record bus.Record) string { return record.Header(contract.HeaderOrganization) }

// Consume stores the entries of complete requests as blocks, in the
// transaction that moves the positions, except those of deleted
// projects. A record that completes a request whose lines differ from
// its headers is permanent, and parked by the bus.
func (l *LogStore) Consume(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	received, err := inbox.Receive(ctx, tx, records, nil)
	if err != nil {
		return err
	}
	kept := &blockWriter{log: l, tx: tx}
	err = received.Each(ctx, tx, func(record bus.Record, logs contract.LogsAccepted) error { return kept.add(ctx, logs, record) })
	if err != nil {
		return err
	}
	return kept.finish(ctx)
}

// portion is how many bytes of lines become blocks together: a large
// request may exceed the memory.
const portion = 32 << 20

// A blockWriter stores fresh records as blocks, portion by portion.
type blockWriter struct {
	log   *LogStore
	tx    pgx.Tx
	fresh []fresh
	size  int
}

func (k *blockWriter) add(ctx context.Context, logs contract.LogsAccepted, record bus.Record) error {
	k.fresh, k.size = append(k.fresh, fresh{logs: logs, record: record}), k.size+len(logs.Lines)
	if k.size < portion {
		return nil
	}
	return k.finish(ctx)
}

func (k *blockWriter) finish(ctx context.Context) error {
	blocks, err := gather(k.fresh, k.log.NewID)
	if err != nil {
		return err
	}
	k.fresh, k.size = nil, 0
	return k.log.Store.Keep(ctx, k.tx, blocks)
}
