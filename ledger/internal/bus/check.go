package bus

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/watermark"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/contract"
)

// A Log reads weir.logs.v1 again to compare it with the charges.
type Log struct {
	Brokers []string
	Dialer  *bus.Dialer // nil: the default
}

// Check reads the records of a partition's ranges, in offset order, and
// adds up their headers. Records that retention has removed, or that
// the log has lost and fillers stand for, can't be checked and count as
// sound.
func (l *Log) Check(ctx context.Context, ranges []ledger.Range) ([]ledger.Violation, error) {
	if len(ranges) == 0 {
		return nil, nil
	}
	found := make([]ledger.Range, len(ranges))
	for i := range found {
		found[i].Checksum = new(int64)
	}
	lost := map[int]bool{} // ranges with fillers
	start, err := l.read(ctx, ranges, func(record bus.Record) {
		at, ok := slices.BinarySearchFunc(ranges, record.Offset, compareRange)
		if !ok {
			return
		}
		lost[at] = lost[at] || record.IsFiller()
		// A record that can't be parsed is parked; the ranges leave it out.
		if logs, err := contract.ParseLogsAccepted(record.Lookup(), nil); err == nil {
			found[at].Records++
			found[at].Bytes += logs.Bytes
			*found[at].Checksum += int64(logs.Checksum()) //nolint:gosec // it wraps around
		}
	})
	if err != nil {
		return nil, err
	}
	var violations []ledger.Violation
	for i, r := range ranges {
		if r.First >= start && !lost[i] && !sameRecords(r, found[i]) {
			violations = append(violations, ledger.Violation{Invariant: ledger.LedgerIsLog, Detail: fmt.Sprintf(
				"partition %d, offsets [%d, %d): %d bytes of %d records were applied, the log has %d bytes of %d, with the checksum %x",
				r.Partition, r.First, r.Next, r.Bytes, r.Records, found[i].Bytes, found[i].Records, *found[i].Checksum)})
		}
	}
	return violations, nil
}

// sameRecords reports whether a range matches the log.
func sameRecords(applied, found ledger.Range) bool {
	return found.Records == applied.Records && found.Bytes == applied.Bytes && (applied.Checksum == nil || *applied.Checksum == *found.Checksum)
}

// compareRange compares a range with an offset, for a binary search.
func compareRange(r ledger.Range, offset int64) int {
	switch {
	case r.Next <= offset:
		return -1
	case r.First > offset:
		return 1
	}
	return 0
}

// End returns where the log ends now.
func (l *Log) End(ctx context.Context) (watermark.End, error) {
	reader := &logrange.Reader{Brokers: l.Brokers, Dialer: l.Dialer, Topic: contract.TopicLogs}
	topic, bounds, err := reader.Bounds(ctx)
	end := watermark.End{Topic: topic, Next: contract.Positions{}}
	for partition, log := range bounds {
		end.Next[partition] = log.End
	}
	return end, err
}

// read calls each with the records from the first range to the last. It
// returns the first offset still in the log.
func (l *Log) read(ctx context.Context, ranges []ledger.Range, each func(bus.Record)) (start int64, err error) {
	reader := &logrange.Reader{Brokers: l.Brokers, Dialer: l.Dialer, Topic: contract.TopicLogs}
	return reader.Read(ctx, ranges[0].Partition, ranges[0].First, ranges[len(ranges)-1].Next, each)
}
