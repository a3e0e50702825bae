package bus

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
)

// fillers are the offsets of each partition at which the log has lost
// its records: see logend. The books account for them, as for each
// offset, and charge nothing.
type fillers map[int]stretch

// A stretch is a half-open range of offsets.
type stretch struct{ first, next int64 }

// withoutFillers returns the records that charge something, and the
// offsets of the others. Records are in the order of their partitions.
func withoutFillers(all []bus.Record) (records []bus.Record, lost fillers) {
	lost, records = fillers{}, make([]bus.Record, 0, len(all))
	for _, r := range all {
		if !r.IsFiller() {
			records = append(records, r)
			continue
		}
		s, known := lost[r.Partition]
		if !known {
			s.first = r.Offset
		}
		s.next = r.Offset + 1
		lost[r.Partition] = s
	}
	return records, lost
}

// save covers the stretches: by the ranges of the same transaction, or
// by empty ones.
func (f fillers) save(ctx context.Context, tx pgx.Tx, ranges []ledger.Range) error {
	for i, r := range ranges {
		if s, known := f[r.Partition]; known {
			ranges[i].First, ranges[i].Next = min(r.First, s.first), max(r.Next, s.next)
			delete(f, r.Partition)
		}
	}
	for partition, s := range f {
		if err := postgres.SaveLost(ctx, tx, partition, s.next); err != nil {
			return err
		}
	}
	return nil
}
