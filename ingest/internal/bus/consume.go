package bus

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
)

// A LogStore keeps what weir.logs.v1 says was accepted: each entry once, under its organization and project.
type LogStore struct {
	Store *postgres.Store
	NewID func() string // makes the UUIDs of blocks; safe for concurrent use
}

// Lanes keep organizations from waiting for each other.
func Lanes() consumer.Lanes { return consumer.Lanes{Of: organization} }

func organization(record bus.Record) string { return record.Header(contract.HeaderOrganization) }

// Consume keeps the entries of fresh records as blocks, in the transaction that moves the positions. A record whose
// lines are not what its headers say is named as permanent, and parked by the bus.
func (l *LogStore) Consume(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	accepted, err := parse(records)
	if err != nil {
		return err
	}
	verdicts, err := inbox.Filter(ctx, tx, accepted)
	if err != nil {
		return err
	}
	var kept []fresh
	for i, logs := range accepted {
		if verdicts[i] == inbox.Fresh {
			kept = append(kept, fresh{logs: logs, record: records[i]})
		}
	}
	blocks, err := gather(kept, l.NewID)
	if err != nil {
		return err
	}
	return l.Store.Keep(ctx, tx, blocks)
}

func parse(records []bus.Record) ([]contract.LogsAccepted, error) {
	accepted := make([]contract.LogsAccepted, len(records))
	for i, record := range records {
		logs, err := contract.ParseLogsAccepted(record.Header, record.Value)
		if err != nil {
			return nil, bus.PermanentRecord(record, err)
		}
		accepted[i] = logs
	}
	return accepted, nil
}
