package bus

import (
	"context"
	"sync"

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

// Ends are the offsets of each partition's next record.
func (l *Log) Ends(ctx context.Context) (ingest.Positions, error) {
	_, ends, err := l.Extent(ctx)
	return ends, err
}

// Extent is the id of the topic and where its partitions end now.
func (l *Log) Extent(ctx context.Context) (topic [16]byte, ends ingest.Positions, err error) {
	topic, bounds, err := l.reader().Bounds(ctx)
	if err != nil {
		return topic, nil, err
	}
	ends = ingest.Positions{}
	for partition, b := range bounds {
		ends[partition] = b.End
	}
	return topic, ends, nil
}

// A Range is a run of offsets of a partition, half-open.
type Range struct {
	Partition int
	From, To  int64
}

// Charges returns what the requests cost whose last records are in ranges.
func (l *Log) Charges(ctx context.Context, ranges ...Range) ([]ingest.Charge, error) {
	var mu sync.Mutex
	var charges []ingest.Charge
	add := func(record bus.Record) {
		event, err := contract.ParseLogsAccepted(record.Header, nil)
		if err != nil || event.Part < event.Parts {
			return // the ledger parks the one, and counts the other with the last part of its request
		}
		mu.Lock()
		defer mu.Unlock()
		charges = append(charges, ingest.Charge{
			Organization: event.Organization, Project: event.Project, Key: event.Key, At: event.Time,
			Bytes: event.Total(), Partition: record.Partition, Offset: record.Offset,
		})
	}
	var readers []func(context.Context) error
	for _, r := range ranges {
		readers = append(readers, func(ctx context.Context) error {
			_, err := l.reader().Read(ctx, r.Partition, min(r.From, r.To), r.To, add)
			return err
		})
	}
	if err := lifecycle.Run(ctx, readers...); err != nil {
		return nil, err
	}
	return charges, ctx.Err()
}
