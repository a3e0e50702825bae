package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/services"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
)

// A Consumer applies records to the books, in the transaction
// that also moves their positions.
type Consumer struct {
	Services  *services.Services
	Clock     func() time.Time
	Conflicts prometheus.Counter // see NewConflicts
}

// ErrConflict means that a part of a request came again, and was another.
var ErrConflict = errors.New("another record of the same part of the same batch was applied before")

// NewConflicts is the metric of records that contradict one that was applied.
func NewConflicts(registerer prometheus.Registerer) prometheus.Counter {
	return promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_ledger_conflicting_records_total",
		Help: "Times that a record had the batch and part of another that was applied, and was not a copy of it. Anything but 0 is an alarm.",
	})
}

// Logs charges each request whole, by the headers of its records, with
// the record that completes it. Other records only count in their
// ranges. Of what is deleted nothing is kept, so its requests only count
// where their parts come together. The bus parks a record with
// impossible headers; any other error rolls back.
func (c *Consumer) Logs(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	all, err := parseLogs(records)
	if err != nil {
		return err
	}
	booked, err := c.book(ctx, tx, all)
	if err != nil {
		return err
	}
	if err := c.Services.Booking.NoteApplied(ctx, tx, booked.ranges); err != nil {
		return err
	}
	return SaveEvents(ctx, tx, booked.events) // the last of all: others who have events wait from here on
}

// booked is what is left to save of records that are booked.
type booked struct {
	ranges []ledger.Range
	events []ledger.Event
}

// book books entries.
func (c *Consumer) book(ctx context.Context, tx pgx.Tx, all entries) (of booked, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return of, err
	}
	requests, err := c.judge(ctx, tx, all)
	if err != nil {
		return of, err
	}
	at := c.Clock().UTC().Truncate(time.Microsecond)
	if of.events, err = c.Services.Booking.Charge(ctx, tx, at, requests); err != nil {
		return of, err
	}
	of.ranges = reachLate(rangesOf(all.parts, requests, at), of.events)
	return of, nil
}

// judge has the inbox take entries, and returns the charges of the requests
// that they make whole. Each part gets its record's checksum.
func (c *Consumer) judge(ctx context.Context, tx pgx.Tx, all entries) ([]ledger.Charge, error) {
	deleted, err := erasure.FindDeletedIn(ctx, tx, all.logs)
	if err != nil {
		return nil, err
	}
	judged, err := inbox.Filter(ctx, tx, all.logs)
	if err != nil {
		return nil, err
	}
	if err := c.refuseConflicts(judged, all.parts); err != nil {
		return nil, err
	}
	for i, checksum := range judged.Checksums {
		all.parts[i].Checksum = checksum
	}
	requests, err := chargesOf(ctx, tx, judged, all.parts)
	if err != nil {
		return nil, err
	}
	return requests, judged.Drop(ctx, tx, deleted.Has)
}

// refuseConflicts has the first record parked that contradicts one of
// before. The others come again without it.
func (c *Consumer) refuseConflicts(judged *inbox.Results, parts []ledger.Charge) error {
	at := slices.Index(judged.Verdicts, inbox.Conflicting)
	if at < 0 {
		return nil
	}
	c.Conflicts.Inc()
	cause := parts[at].Cause
	return bus.PermanentRecord(bus.Record{Partition: cause.Partition, Offset: cause.Offset}, fmt.Errorf("batch %q: %w", cause.Batch, ErrConflict))
}

// chargesOf are the charges of complete requests, in the order of the records
// that complete them. The charges of records are those of the parts.
func chargesOf(ctx context.Context, tx pgx.Tx, judged *inbox.Results, parts []ledger.Charge) ([]ledger.Charge, error) {
	requests := make([]ledger.Charge, 0, len(parts))
	for i, verdict := range judged.Verdicts {
		if verdict != inbox.Fresh {
			continue
		}
		request := parts[i]
		request.Bytes, request.Entries, request.Errors = 0, 0, 0
		add := func(logs contract.LogsAccepted) error {
			request.Bytes, request.Entries, request.Errors = request.Bytes+logs.Bytes, request.Entries+logs.Entries, request.Errors+logs.Errors
			return nil
		}
		if err := judged.Whole(ctx, tx, i, add); err != nil {
			return nil, err
		}
		requests = append(requests, request)
	}
	return requests, nil
}

// rangesOf are the ranges that the parts are from. Parts and
// requests are in the order of their records.
func rangesOf(parts, requests []ledger.Charge, booked time.Time) (ranges []ledger.Range) {
	at := map[int]int{} // where in ranges a partition's is
	for _, part := range parts {
		n, ok := at[part.Cause.Partition]
		if !ok {
			n = len(ranges)
			at[part.Cause.Partition], ranges = n, append(ranges, ledger.NewRange(part, booked))
		}
		ranges[n].Add(part)
	}
	for _, request := range requests {
		ranges[at[request.Cause.Partition]].Charge(request)
	}
	return ranges
}

// reachLate has ranges reach to where that counts which came late.
func reachLate(ranges []ledger.Range, events []ledger.Event) []ledger.Range {
	for _, event := range events {
		if event.Kind != ledger.BooksAdjusted {
			continue
		}
		for i := range ranges {
			ranges[i].Reach(event.Book.Period.Start)
		}
	}
	return ranges
}

// Tenants starts plans of new organizations and withdraws the accounts of
// deleted ones. It ignores other events.
func (c *Consumer) Tenants(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	if err := erasure.Consume(ctx, tx, records); err != nil {
		return err
	}
	beginning, deleted := organizationsIn(records)
	if err := c.Services.Plans.HoldBooks(ctx, tx, c.Clock().UTC().Truncate(time.Microsecond), beginning, deleted); err != nil {
		return err
	}
	events, err := c.startPlans(ctx, tx, records)
	if err != nil {
		return err
	}
	for _, record := range records {
		if err := c.deletionBegun(ctx, tx, record); err != nil {
			return err
		}
	}
	return SaveEvents(ctx, tx, events) // the last of all, as in Logs: who waits for a lock must not have others wait that hold it
}

// organizationsIn are those that begin with records, sorted, and those that are
// deleted. What can't be read is parked later.
func organizationsIn(records []bus.Record) (beginning, deleted []string) {
	for _, record := range records {
		var event struct{ Organization string }
		kind := record.Header(contract.HeaderType)
		if json.Unmarshal(record.Value, &event) != nil || event.Organization == "" {
			continue
		}
		switch kind {
		case contract.TypeOrganizationCreated:
			beginning = append(beginning, event.Organization)
		case contract.TypeDeletionBegun:
			deleted = append(deleted, event.Organization)
		}
	}
	slices.Sort(beginning)
	return slices.Compact(beginning), deleted
}

// deletionBegun takes back the account of an organization that a
// record deletes. Erasure has read it before. Tombstones are passed
// over: what they take back has had its effect.
func (c *Consumer) deletionBegun(ctx context.Context, tx pgx.Tx, record bus.Record) error {
	if record.Header(contract.HeaderType) != contract.TypeDeletionBegun || len(record.Value) == 0 {
		return nil
	}
	var event contract.DeletionBegun
	if err := json.Unmarshal(record.Value, &event); err != nil || event.Project != "" {
		return err
	}
	return c.Services.Accounts.Deleted(ctx, tx, event.Organization)
}

// startPlans starts the plans of all organizations that begin, at once: after a
// ledger was made anew these are all there are.
func (c *Consumer) startPlans(ctx context.Context, tx pgx.Tx, records []bus.Record) ([]ledger.Event, error) {
	var starts []plans.Start
	var created []bus.Record
	for _, record := range records {
		if record.Header(contract.HeaderType) != contract.TypeOrganizationCreated || len(record.Value) == 0 {
			continue
		}
		start, err := startOf(record)
		if err != nil {
			return nil, err
		}
		starts, created = append(starts, start), append(created, record)
	}
	events, err := c.Services.Plans.StartPlans(ctx, tx, c.Clock().UTC().Truncate(time.Microsecond), starts)
	var failed *plans.StartError
	if errors.As(err, &failed) && errors.Is(err, ledger.ErrUnknownTier) {
		return nil, bus.PermanentRecord(created[failed.At], err)
	}
	return events, err
}

// startOf reads an organization's creation.
func startOf(record bus.Record) (plans.Start, error) {
	var event contract.OrganizationCreated
	if err := json.Unmarshal(record.Value, &event); err != nil {
		return plans.Start{}, bus.PermanentRecord(record, fmt.Errorf("cannot read the event %q: %w", record.Header(contract.HeaderID), err))
	}
	at := event.CreatedAt.UTC().Truncate(time.Microsecond)
	if event.Organization == "" || at.Year() < ledger.FirstYear || at.Year() > ledger.LastYear {
		return plans.Start{}, bus.PermanentRecord(record, fmt.Errorf("cannot open an account for organization %q created at %s", event.Organization, at))
	}
	return plans.Start{Organization: event.Organization, Plan: ledger.Plan{From: at, Tier: ledger.Tier(event.Tier)}, Cause: ledger.Cause{
		Event: record.Header(contract.HeaderID), Source: ledger.FromTenants, Partition: record.Partition, Offset: record.Offset, At: at,
	}}, nil
}
