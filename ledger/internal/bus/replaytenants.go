package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
)

// Tenants applies the records of tenants below an offset and returns
// the topic's id. The ledger knows an organization from its creation on.
func (r *Replay) Tenants(ctx context.Context, through int64) (topic [16]byte, err error) {
	reader := r.reader(contract.TopicTenants)
	if topic, _, err = reader.Bounds(ctx); err != nil {
		return topic, err
	}
	for from := int64(0); from < through; from += replayReadSize {
		var records []bus.Record
		keep := func(record bus.Record) {
			record.Headers = slices.Clone(record.Headers)
			records = append(records, record.Detached())
		}
		if _, err := reader.Read(ctx, 0, from, min(from+replayReadSize, through), keep); err != nil {
			return topic, err
		}
		if err := r.applyTenants(ctx, records); err != nil {
			return topic, fmt.Errorf("cannot apply what tenants has published: %w", err)
		}
	}
	r.now = time.Time{} // the first entry sets it
	return topic, nil
}

// applyTenants applies records of tenants, those of about one time together.
func (r *Replay) applyTenants(ctx context.Context, records []bus.Record) error {
	for len(records) > 0 {
		n, last := sameTime(records)
		if !last.IsZero() {
			r.now = last
		}
		first := records[:n]
		drop := func(of bus.Position) {
			first = slices.DeleteFunc(first, func(record bus.Record) bool { return record.Offset == of.Offset })
		}
		skipped, err := applySkipping(ctx, r.Pool, drop, func(tx pgx.Tx) error { return r.Consumer.Tenants(ctx, tx, first) })
		r.Skipped, records = r.Skipped+skipped, records[n:]
		if err != nil {
			return err
		}
	}
	return nil
}

// maxCreationSpan is the longest time between creations that are
// applied together, well below the tolerance for a plan's start.
const maxCreationSpan = time.Hour

// sameTime returns how many of records may be applied together, and
// when the last of their organizations was created.
func sameTime(records []bus.Record) (n int, last time.Time) {
	var first time.Time
	for _, record := range records {
		if at, created := createdAt(record); created {
			if first.IsZero() {
				first, last = at, at
			}
			if at.Sub(first).Abs() > maxCreationSpan {
				break
			}
			last = calendar.Later(last, at)
		}
		n++
	}
	return n, last
}

func createdAt(record bus.Record) (at time.Time, created bool) {
	if record.Header(contract.HeaderType) != contract.TypeOrganizationCreated {
		return at, false
	}
	start, err := parseStart(record)
	return start.Plan.From, err == nil
}
