package inbox

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
)

// Received is what an inbox has judged of some records of weir.logs.v1.
type Received struct {
	Logs    []contract.LogsAccepted // the wanted ones
	sources []bus.Record
	results *Results
}

// Receive parses records and filters them, without those of deleted
// organizations and projects, in tx, which acts as the system from then on.
// want chooses records, and may drop their Lines; nil: all. An unreadable
// record is permanent: the bus parks it.
func Receive(ctx context.Context, tx pgx.Tx, records []bus.Record, want func(*contract.LogsAccepted) bool) (*Received, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return nil, err
	}
	all := &Received{Logs: make([]contract.LogsAccepted, 0, len(records)), sources: make([]bus.Record, 0, len(records))}
	for _, record := range records {
		logs, err := contract.ParseLogsAccepted(record.Header, record.Value)
		if err != nil {
			return nil, bus.PermanentRecord(record, err)
		}
		if want == nil || want(&logs) {
			all.Logs, all.sources = append(all.Logs, logs), append(all.sources, record)
		}
	}
	deleted, err := erasure.FindDeletedIn(ctx, tx, all.Logs)
	if err != nil {
		return nil, err
	}
	all.drop(deleted)
	all.results, err = Filter(ctx, tx, all.Logs)
	return all, err
}

func (r *Received) drop(deleted erasure.Set) {
	if len(deleted) == 0 {
		return
	}
	logs, sources := r.Logs, r.sources
	r.Logs, r.sources = r.Logs[:0], r.sources[:0]
	for i := range logs {
		if !deleted.Has(logs[i].Organization, logs[i].Project) {
			r.Logs, r.sources = append(r.Logs, logs[i]), append(r.sources, sources[i])
		}
	}
}

// Each calls fn with the parts, in order, of each request that a record
// completes, and with that record. fn may use tx.
func (r *Received) Each(ctx context.Context, tx pgx.Tx, fn func(bus.Record, contract.LogsAccepted) error) error {
	for i, source := range r.sources {
		if r.results.Verdicts[i] != Fresh {
			continue
		}
		if err := r.results.Whole(ctx, tx, i, func(part contract.LogsAccepted) error { return fn(source, part) }); err != nil {
			return err
		}
	}
	return nil
}
