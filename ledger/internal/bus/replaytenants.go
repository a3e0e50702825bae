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

// Tenants applies what tenants has published below an offset, and returns the
// id of its topic. The ledger knows an organization from its creation on.
func (r *Replay) Tenants(ctx context.Context, through int64) (topic [16]byte, err error) {
	reader := r.reader(contract.TopicTenants)
	if topic, _, err = reader.Bounds(ctx); err != nil {
		return topic, err
	}
	for from := int64(0); from < through; from += replayedChunk {
		var records []bus.Record
		keep := func(record bus.Record) {
			record.Headers = slices.Clone(record.Headers)
			records = append(records, record.Detached())
		}
		if _, err := reader.Read(ctx, 0, from, min(from+replayedChunk, through), keep); err != nil {
			return topic, err
		}
		if err := r.begin(ctx, records); err != nil {
			return topic, fmt.Errorf("cannot apply what tenants has published: %w", err)
		}
	}
	r.now = time.Time{} // that of the entries begins where they do
	return topic, nil
}

// begin applies records of tenants, those at once that are of about one time.
func (r *Replay) begin(ctx context.Context, records []bus.Record) error {
	for len(records) > 0 {
		n, last := together(records)
		if !last.IsZero() {
			r.now = last
		}
		first := records[:n]
		drop := func(of bus.Position) {
			first = slices.DeleteFunc(first, func(record bus.Record) bool { return record.Offset == of.Offset })
		}
		passed, err := applied(ctx, r.Pool, drop, func(tx pgx.Tx) error { return r.Consumer.Tenants(ctx, tx, first) })
		r.Passed, records = r.Passed+passed, records[n:]
		if err != nil {
			return err
		}
	}
	return nil
}

// mostApart is how far apart organizations are created that begin at once: much
// less than what counts as their beginning.
const mostApart = time.Hour

// together is how many of records may be applied at once, and when the last
// of their organizations was created.
func together(records []bus.Record) (n int, last time.Time) {
	var first time.Time
	for _, record := range records {
		if at, created := createdAt(record); created {
			if first.IsZero() {
				first, last = at, at
			}
			if at.Sub(first).Abs() > mostApart {
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
	start, err := startOf(record)
	return start.Plan.From, err == nil
}
