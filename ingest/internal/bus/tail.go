package bus

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/tails"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// A Tail passes on what comes in weir.logs.v1 to those who watch it. It
// reads all partitions: the records of a project are spread over them, and
// processes may differ in how.
type Tail struct {
	Log    *Log
	Hub    *tails.Hub
	Logger *slog.Logger
}

// Read reads the log from its end on, until ctx ends; see tails.Hub.
func (t *Tail) Read(ctx context.Context, begun func()) error {
	return t.Log.reader().Follow(ctx, t.Logger, begun, func(record bus.Record) {
		if err := t.offer(record); err != nil {
			t.Logger.Error("a record can't be shown", slog.Int("partition", record.Partition), slog.Int64("offset", record.Offset),
				slog.String("error", err.Error()))
		}
	})
}

// offer reads the entries of a record only if somebody watches them.
func (t *Tail) offer(record bus.Record) (err error) {
	defer func() { // a panic here would end the process
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	entries, _ := strconv.Atoi(record.Header(contract.HeaderEntries))
	known := tails.Record{Organization: organization(record), Project: record.Header(contract.HeaderProject), Entries: entries}
	return t.Hub.Offer(known, func(each func(ingest.Stored)) error {
		logs, err := contract.ParseLogsAccepted(record.Lookup(), record.Value)
		if err != nil {
			return err
		}
		return eachEntry(logs, each)
	})
}
