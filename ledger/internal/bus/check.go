package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// patience is how long the broker may take to hand out a record that it has.
const patience = 30 * time.Second

// maxWait is how long the reader, when it is closed, may still wait for records that nobody needs.
const maxWait = 20 * time.Millisecond

// A Log reads weir.logs.v1 again, to compare it with what was charged.
type Log struct {
	Brokers []string
	Dialer  *bus.Dialer // nil: the default
}

// Check reads the records of one partition's ranges again and adds up what their headers say. The ranges are in the order
// of their offsets. What has left the log (retention) can't be checked any more and counts as sound.
func (l *Log) Check(ctx context.Context, ranges []ledger.Range) ([]ledger.Violation, error) {
	if len(ranges) == 0 {
		return nil, nil
	}
	found := make([]ledger.Range, len(ranges))
	start, err := l.read(ctx, ranges, func(offset, bytes int64) {
		at, ok := slices.BinarySearchFunc(ranges, offset, compareRange)
		if ok {
			found[at].Records++
			found[at].Bytes += bytes
		}
	})
	if err != nil {
		return nil, err
	}
	var violations []ledger.Violation
	for i, r := range ranges {
		if r.First >= start && (found[i].Records != r.Records || found[i].Bytes != r.Bytes) {
			violations = append(violations, ledger.Violation{Invariant: ledger.LedgerIsLog, Detail: fmt.Sprintf(
				"partition %d, offsets [%d, %d): %d bytes of %d records were applied, the log has %d bytes of %d",
				r.Partition, r.First, r.Next, r.Bytes, r.Records, found[i].Bytes, found[i].Records)})
		}
	}
	return violations, nil
}

// compareRange tells on which side of an offset a range lies.
func compareRange(r ledger.Range, offset int64) int {
	switch {
	case r.Next <= offset:
		return -1
	case r.First > offset:
		return 1
	}
	return 0
}

// read calls each with the records of the ranges' whole stretch, and returns the first offset that was still there.
func (l *Log) read(ctx context.Context, ranges []ledger.Range, each func(offset, bytes int64)) (start int64, err error) {
	first, end := ranges[0].First, ranges[len(ranges)-1].Next
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: l.Brokers, Dialer: l.Dialer, Topic: contract.TopicLogs, Partition: ranges[0].Partition,
		MaxBytes: 2 * contract.MaxRecordBytes, MaxWait: maxWait,
	})
	defer func() { err = errors.Join(err, reader.Close()) }()
	if err := reader.SetOffset(first); err != nil {
		return 0, err
	}
	for start, next := int64(-1), first; ; {
		record, err := readWithin(ctx, reader, patience)
		if err != nil {
			return 0, fmt.Errorf("cannot read partition %d from offset %d: %w", ranges[0].Partition, next, err)
		}
		if start < 0 {
			start = record.Offset
		}
		// A record that can't be parsed is parked: that it is shows in what the ranges leave out.
		if logs, err := contract.ParseLogsAccepted(headerOf(record), nil); err == nil && record.Offset < end {
			each(record.Offset, logs.Bytes)
		}
		if next = record.Offset + 1; next >= end {
			return start, nil
		}
	}
}

func readWithin(ctx context.Context, reader *kafka.Reader, d time.Duration) (kafka.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return reader.ReadMessage(ctx)
}

func headerOf(record kafka.Message) func(string) string {
	return func(name string) string {
		for _, header := range record.Headers {
			if header.Key == name {
				return string(header.Value)
			}
		}
		return ""
	}
}
