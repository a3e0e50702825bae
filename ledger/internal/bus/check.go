package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
)

// patience is how long the broker may take to hand out a record that it has.
const patience = 30 * time.Second

// A Log reads weir.logs.v1 again, to compare it with what was charged.
type Log struct {
	Brokers []string
}

// Check reads a range's records again and adds up what their headers say. A range whose start has left the log (retention)
// can't be checked any more and counts as sound.
func (l *Log) Check(ctx context.Context, r postgres.Range) ([]postgres.Violation, error) {
	records, bytes, err := l.sum(ctx, r)
	if errors.Is(err, errGone) {
		return nil, nil
	}
	if err != nil || (records == r.Records && bytes == r.Bytes) {
		return nil, err
	}
	return []postgres.Violation{{Invariant: postgres.LedgerIsLog, Detail: fmt.Sprintf(
		"partition %d, offsets [%d, %d): %d bytes of %d records were applied, the log has %d bytes of %d",
		r.Partition, r.First, r.Next, r.Bytes, r.Records, bytes, records)}}, nil
}

var errGone = errors.New("the records are no longer in the log")

func (l *Log) sum(ctx context.Context, r postgres.Range) (records int, bytes int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: l.Brokers, Topic: contract.TopicLogs, Partition: r.Partition, MaxBytes: 2 * contract.MaxRecordBytes, MaxWait: time.Second,
	})
	defer func() { err = errors.Join(err, reader.Close()) }()
	if err := reader.SetOffset(r.First); err != nil {
		return 0, 0, err
	}
	for next := r.First; next < r.Next; {
		record, err := reader.ReadMessage(ctx)
		if err != nil {
			return 0, 0, fmt.Errorf("cannot read partition %d from offset %d: %w", r.Partition, next, err)
		}
		if next == r.First && record.Offset > r.First {
			return 0, 0, errGone
		}
		if next = record.Offset + 1; record.Offset >= r.Next {
			break
		}
		logs, err := contract.ParseLogsAccepted(headerOf(record), nil)
		if err != nil {
			continue // parked: see verifyOrder for that it is
		}
		records, bytes = records+1, bytes+logs.Bytes
	}
	return records, bytes, nil
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
