package bus

import (
	"context"
	"sync"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A Log reads weir.logs.v1 from any position up to an end.
type Log struct {
	Brokers []string
	Dialer  *bus.Dialer // nil: the default
}

func (l *Log) reader() *logrange.Reader {
	return &logrange.Reader{Brokers: l.Brokers, Dialer: l.Dialer, Topic: contract.TopicLogs}
}

// Ends are the offsets at which the next record of each partition will stand.
func (l *Log) Ends(ctx context.Context) (ingest.Positions, error) {
	bounds, err := l.reader().Bounds(ctx)
	if err != nil {
		return nil, err
	}
	ends := ingest.Positions{}
	for partition, b := range bounds {
		ends[partition] = b.End
	}
	return ends, nil
}

// A Charge is what one request costs whom, at the position of its last record.
type Charge struct {
	Organization string
	At           time.Time
	Bytes        int64
	Partition    int
	Offset       int64
}

// ReadGap returns the charges from the given positions to the ends that the log has now: what was accepted and perhaps
// not yet counted when a process starts.
func (l *Log) ReadGap(ctx context.Context, from ingest.Positions) ([]Charge, error) {
	ends, err := l.Ends(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var charges []Charge
	add := func(record bus.Record) {
		event, err := contract.ParseLogsAccepted(record.Header, nil)
		if err != nil || event.Part < event.Parts {
			return // the ledger parks the one, and counts the other with the last part of its request
		}
		mu.Lock()
		defer mu.Unlock()
		charges = append(charges, Charge{event.Organization, event.Time, event.Total(), record.Partition, record.Offset})
	}
	var readers []func(context.Context) error
	for partition, end := range ends {
		readers = append(readers, func(ctx context.Context) error {
			_, err := l.reader().Read(ctx, partition, min(from[partition], end), end, add)
			return err
		})
	}
	if err := lifecycle.Run(ctx, readers...); err != nil {
		return nil, err
	}
	return charges, ctx.Err()
}
