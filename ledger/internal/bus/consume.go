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

// A Consumer applies records to the books. Their positions move in the
// same transaction.
type Consumer struct {
	Services  *services.Services
	Clock     func() time.Time
	Conflicts prometheus.Counter // see NewConflicts
}

// ErrConflict means that part of a request came again with other content.
var ErrConflict = errors.New("another record of the same part of the same batch was applied before")

// NewConflicts returns the metric of records that contradict an applied one.
func NewConflicts(registerer prometheus.Registerer) prometheus.Counter {
	return promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_ledger_conflicting_records_total",
		Help: "Times that a record had the batch and part of another that was applied, and was not a copy of it. Alert above 0.",
	})
}

// Logs charges a request when the record that completes it arrives.
// Other records only count in their ranges. Nothing is kept of deleted
// organizations and projects: their requests only count where their
// parts come together. Fillers only count in ranges, too. The bus parks
// a record with invalid headers. Any other error rolls back.
func (c *Consumer) Logs(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	records, lost := withoutFillers(records)
	all, err := parseLogs(records)
	if err != nil {
		return err
	}
	booked, err := c.book(ctx, tx, all)
	if err != nil {
		return err
	}
	if err := lost.save(ctx, tx, booked.ranges); err != nil {
		return err
	}
	if err := c.Services.Booking.NoteApplied(ctx, tx, booked.ranges); err != nil {
		return err
	}
	return SaveEvents(ctx, tx, booked.events) // last: it locks the outbox for other writers
}

// booked is what is left to save of booked records.
type booked struct {
	ranges []ledger.Range
	events []ledger.Event
}

// book books entries.
func (c *Consumer) book(ctx context.Context, tx pgx.Tx, all entries) (of booked, err error) {
	requests, err := c.completedCharges(ctx, tx, all)
	if err != nil {
		return of, err
	}
	at := c.Clock().UTC().Truncate(time.Microsecond)
	if of.events, err = c.Services.Booking.Charge(ctx, tx, at, requests); err != nil {
		return of, err
	}
	of.ranges = ledger.RangesOf(all.parts, requests, at)
	ledger.ExtendToLate(of.ranges, of.events)
	return of, nil
}

// recall passes entries through the inbox and books nothing.
func (c *Consumer) recall(ctx context.Context, tx pgx.Tx, all entries) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	_, err := c.completedCharges(ctx, tx, all)
	return err
}

// completedCharges passes entries through the inbox and returns the
// charges of the requests they complete. Each part gets its record's checksum.
func (c *Consumer) completedCharges(ctx context.Context, tx pgx.Tx, all entries) ([]ledger.Charge, error) {
	deleted, err := erasure.FindDeletedIn(ctx, tx, all.logs)
	if err != nil {
		return nil, err
	}
	results, err := inbox.Filter(ctx, tx, all.logs)
	if err != nil {
		return nil, err
	}
	if err := c.refuseConflicts(results, all.parts); err != nil {
		return nil, err
	}
	for i, checksum := range results.Checksums {
		all.parts[i].Checksum = checksum
	}
	requests, err := chargesOf(ctx, tx, results, all.parts)
	if err != nil {
		return nil, err
	}
	return requests, results.Drop(ctx, tx, deleted.Has)
}

// refuseConflicts returns an error that parks the first record that
// contradicts an applied one. The others come again without it.
func (c *Consumer) refuseConflicts(results *inbox.Results, parts []ledger.Charge) error {
	at := slices.Index(results.Verdicts, inbox.Conflicting)
	if at < 0 {
		return nil
	}
	c.Conflicts.Inc()
	cause := parts[at].Cause
	return bus.PermanentRecord(bus.Record{Partition: cause.Partition, Offset: cause.Offset}, fmt.Errorf("batch %q: %w", cause.Batch, ErrConflict))
}

// chargesOf returns the charges of complete requests, in the order of
// the records that complete them. parts are the charges of single records.
func chargesOf(ctx context.Context, tx pgx.Tx, results *inbox.Results, parts []ledger.Charge) ([]ledger.Charge, error) {
	requests := make([]ledger.Charge, 0, len(parts))
	for i, verdict := range results.Verdicts {
		if verdict != inbox.Fresh {
			continue
		}
		request := parts[i]
		request.Bytes, request.Entries, request.Errors = 0, 0, 0
		add := func(logs contract.LogsAccepted) error {
			request.Bytes, request.Entries, request.Errors = request.Bytes+logs.Bytes, request.Entries+logs.Entries, request.Errors+logs.Errors
			return nil
		}
		if err := results.Whole(ctx, tx, i, add); err != nil {
			return nil, err
		}
		requests = append(requests, request)
	}
	return requests, nil
}

// Tenants starts the plans of new organizations and withdraws the
// accounts of deleted ones. It ignores other events.
func (c *Consumer) Tenants(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := erasure.Consume(ctx, tx, records); err != nil {
		return err
	}
	created, deleted := organizationsIn(records)
	if err := c.Services.Plans.HoldBooks(ctx, tx, c.Clock().UTC().Truncate(time.Microsecond), created, deleted); err != nil {
		return err
	}
	events, err := c.startPlans(ctx, tx, records)
	if err != nil {
		return err
	}
	for _, record := range records {
		if err := c.withdrawDeleted(ctx, tx, record); err != nil {
			return err
		}
	}
	return SaveEvents(ctx, tx, events) // last, as in Logs: nobody may wait for locks while holding the outbox
}

// organizationsIn returns the created organizations, sorted, and the
// deleted ones. Records that can't be read are parked later.
func organizationsIn(records []bus.Record) (created, deleted []string) {
	for _, record := range records {
		var event struct{ Organization string }
		kind := record.Header(contract.HeaderType)
		if json.Unmarshal(record.Value, &event) != nil || event.Organization == "" {
			continue
		}
		switch kind {
		case contract.TypeOrganizationCreated:
			created = append(created, event.Organization)
		case contract.TypeDeletionBegun:
			deleted = append(deleted, event.Organization)
		}
	}
	slices.Sort(created)
	return slices.Compact(created), deleted
}

// withdrawDeleted withdraws the account of a deleted organization.
// Erasure has read the record before. It skips tombstones, whose event
// has been applied.
func (c *Consumer) withdrawDeleted(ctx context.Context, tx pgx.Tx, record bus.Record) error {
	if record.Header(contract.HeaderType) != contract.TypeDeletionBegun || len(record.Value) == 0 {
		return nil
	}
	var event contract.DeletionBegun
	if err := json.Unmarshal(record.Value, &event); err != nil || event.Project != "" {
		return err
	}
	return c.Services.Accounts.Withdraw(ctx, tx, event.Organization)
}

// startPlans starts the plans of all created organizations at once.
// During a rebuild these are all there are.
func (c *Consumer) startPlans(ctx context.Context, tx pgx.Tx, records []bus.Record) ([]ledger.Event, error) {
	var starts []plans.Start
	var causes []bus.Record
	for _, record := range records {
		if record.Header(contract.HeaderType) != contract.TypeOrganizationCreated || len(record.Value) == 0 {
			continue
		}
		start, err := parseStart(record)
		if err != nil {
			return nil, err
		}
		starts, causes = append(starts, start), append(causes, record)
	}
	events, err := c.Services.Plans.StartPlans(ctx, tx, c.Clock().UTC().Truncate(time.Microsecond), starts)
	var failed *plans.StartError
	if errors.As(err, &failed) && errors.Is(err, ledger.ErrUnknownTier) {
		return nil, bus.PermanentRecord(causes[failed.At], err)
	}
	return events, err
}

// parseStart reads an organization's creation.
func parseStart(record bus.Record) (plans.Start, error) {
	var event contract.OrganizationCreated
	if err := json.Unmarshal(record.Value, &event); err != nil {
		return plans.Start{}, bus.PermanentRecord(record, fmt.Errorf("cannot read the event %q: %w", record.Header(contract.HeaderID), err))
	}
	at := event.CreatedAt.UTC().Truncate(time.Microsecond)
	if event.Organization == "" || at.Year() < ledger.FirstYear || at.Year() > ledger.LastYear {
		return plans.Start{}, bus.PermanentRecord(record, fmt.Errorf("cannot open an account for organization %q created at %s", event.Organization, at))
	}
	return plans.Start{Organization: event.Organization, Plan: ledger.Plan{From: at, Tier: ledger.Tier(event.Tier)}}, nil
}

// An entry is the bookable part of a record of weir.logs.v1. Its
// headers hold all of it.
type entry struct {
	logs   contract.LogsAccepted
	charge ledger.Charge // of the record alone
}

// entries are several, by what each step of booking needs.
type entries struct {
	logs  []contract.LogsAccepted
	parts []ledger.Charge // of each record alone
}

func (e *entries) add(one entry) {
	e.logs, e.parts = append(e.logs, one.logs), append(e.parts, one.charge)
}

// drop removes the entry of a record.
func (e *entries) drop(of bus.Position) {
	at := slices.IndexFunc(e.parts, func(part ledger.Charge) bool {
		return part.Cause.Partition == of.Partition && part.Cause.Offset == of.Offset
	})
	if at >= 0 {
		e.logs, e.parts = slices.Delete(e.logs, at, at+1), slices.Delete(e.parts, at, at+1)
	}
}

// parseLogs parses records. An invalid header is that record's permanent error.
func parseLogs(records []bus.Record) (entries, error) {
	all := entries{make([]contract.LogsAccepted, 0, len(records)), make([]ledger.Charge, 0, len(records))}
	for _, record := range records {
		one, err := parseEntry(record)
		if err != nil {
			return entries{}, bus.PermanentRecord(record, err)
		}
		all.add(one)
	}
	return all, nil
}

func parseEntry(record bus.Record) (entry, error) {
	logs, err := contract.ParseLogsAccepted(record.Lookup(), nil)
	if err != nil {
		return entry{}, err
	}
	e := entry{logs, chargeOf(logs, record)}
	return e, e.charge.Validate()
}

func chargeOf(logs contract.LogsAccepted, record bus.Record) ledger.Charge {
	return ledger.Charge{
		Organization: logs.Organization,
		Bytes:        logs.Bytes,
		Entries:      logs.Entries,
		Errors:       logs.Errors,
		Environment:  logs.Environment,
		Cause: ledger.Cause{
			Event: logs.ID(), Batch: logs.Batch, Source: ledger.FromLogs,
			Partition: record.Partition, Offset: record.Offset,
			At: logs.Time.Truncate(time.Microsecond), Project: logs.Project, Key: logs.Key,
		},
	}
}

// Outcomes consumes the outcomes of requests. Quota refusals exhaust a
// period, tallies count as usage. It ignores other facts.
func (c *Consumer) Outcomes(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	refusals, tallies, err := parseOutcomes(records)
	if err != nil {
		return err
	}
	booked := c.Clock().UTC().Truncate(time.Microsecond)
	events, err := c.Services.Booking.Refuse(ctx, tx, booked, refusals)
	if err != nil {
		return err
	}
	if err := c.Services.Booking.Count(ctx, tx, booked, tallies); err != nil {
		return err
	}
	return SaveEvents(ctx, tx, events) // last, as in Logs
}

func parseOutcomes(records []bus.Record) (refusals []ledger.Refusal, tallies []ledger.Tally, err error) {
	for _, record := range records {
		var refusal ledger.Refusal
		var tally ledger.Tally
		switch record.Header(contract.HeaderType) {
		case contract.TypeQuotaRefused:
			refusal, err = parseRefusal(record)
			refusals = append(refusals, refusal)
		case contract.TypeRequestsCounted:
			tally, err = parseTally(record)
			tallies = append(tallies, tally)
		}
		if err != nil {
			return nil, nil, bus.PermanentRecord(record, err)
		}
	}
	return refusals, tallies, nil
}

func parseTally(record bus.Record) (ledger.Tally, error) {
	var fact contract.RequestsCounted
	if err := json.Unmarshal(record.Value, &fact); err != nil {
		return ledger.Tally{}, fmt.Errorf("cannot read the event %q: %w", record.Header(contract.HeaderID), err)
	}
	tally := ledger.Tally{Organization: fact.Organization, Process: fact.Process, Sequence: fact.Sequence, At: fact.From.UTC()}
	for _, count := range fact.Counts {
		tally.Uses = append(tally.Uses, ledger.Use{
			Organization: fact.Organization, Hour: tally.At.Truncate(time.Hour), Project: count.Project, Key: count.APIKey, Environment: count.Environment,
			Outcome: count.Outcome, Reason: count.Reason, Requests: count.Requests, Entries: count.Entries, Bytes: count.Bytes, KeyInBody: count.KeyInBody,
		})
	}
	return tally, tally.Validate()
}

func parseRefusal(record bus.Record) (ledger.Refusal, error) {
	var fact contract.QuotaRefused
	if err := json.Unmarshal(record.Value, &fact); err != nil {
		return ledger.Refusal{}, fmt.Errorf("cannot read the event %q: %w", record.Header(contract.HeaderID), err)
	}
	refusal := ledger.Refusal{
		Organization: fact.Organization, Environment: fact.Environment, Reason: fact.Reason, Bytes: fact.Bytes, Remaining: fact.Remaining,
		Quota: fact.Quota, Latch: ledger.Latch{Since: fact.Since}, PeriodStart: fact.PeriodStart.UTC(), Exhausts: fact.Exhausts, Requests: fact.Requests,
		Cause: ledger.Cause{
			Event: fact.RequestID, Source: ledger.FromOutcomes, Partition: record.Partition, Offset: record.Offset,
			At: fact.At.UTC().Truncate(time.Microsecond), Project: fact.Project, Key: fact.APIKey,
		},
	}
	switch fact.Reason {
	case contract.ReasonProjectBudget:
		refusal.Spender.Project = fact.Project
	case contract.ReasonKeyBudget:
		refusal.Spender.Key = fact.APIKey
	}
	return refusal, refusal.Validate()
}
