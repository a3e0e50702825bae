package booking

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract/calendar"
)

// A Service books accepted logs and the outcomes of requests. It writes
// in the caller's transaction, which sees all organizations.
type Service struct {
	overshoot prometheus.Counter
}

// New returns a service; with nil metrics are not registered.
func New(metrics prometheus.Registerer) *Service {
	return &Service{overshoot: promauto.With(metrics).NewCounter(prometheus.CounterOpts{
		Name: "weir_ledger_overshoot_bytes_total",
		Help: "Bytes that were accepted beyond what plans allow, which the operator bears; again where a transaction was rolled back.",
	})}
}

// countOvershoot adds the overshoot of opened books to the metric.
func (s *Service) countOvershoot(opened map[string]*ledger.Books) {
	for _, books := range opened {
		for _, transfer := range books.Transfers {
			if transfer.To == ledger.Overshoot {
				s.overshoot.Add(float64(transfer.Amount))
			}
		}
	}
}

// Charge books valid charges and returns their events. An unknown
// organization becomes provisional.
func (s *Service) Charge(ctx context.Context, tx pgx.Tx, booked time.Time, charges []ledger.Charge) ([]ledger.Event, error) {
	if len(charges) == 0 {
		return nil, nil
	}
	charged := countByOrganization(charges)
	known, err := postgres.LockOrganizations(ctx, tx, booked, slices.Sorted(maps.Keys(charged)))
	if err != nil {
		return nil, fmt.Errorf("cannot lock the books: %w", err)
	}
	if err := postgres.EnsureDays(ctx, tx, daysOf(charges)...); err != nil {
		return nil, err
	}
	opened, err := s.open(ctx, tx, known, charges)
	if err != nil {
		return nil, fmt.Errorf("cannot open the books: %w", err)
	}
	for id, books := range opened {
		books.Reserve(charged[id])
	}
	for _, charge := range charges {
		if err := opened[charge.Organization].Charge(charge); err != nil {
			return nil, err
		}
	}
	if err := ensureLate(ctx, tx, opened); err != nil {
		return nil, err
	}
	if err := postgres.SaveBooks(ctx, tx, booked, opened, charges); err != nil {
		return nil, fmt.Errorf("cannot write the books: %w", err)
	}
	s.countOvershoot(opened)
	return unitofwork.EventsOf(opened), nil
}

// ensureLate creates the days in which late charges count: the first of
// an open period.
func ensureLate(ctx context.Context, tx pgx.Tx, opened map[string]*ledger.Books) error {
	var days []time.Time
	for _, books := range opened {
		for _, transfer := range books.Transfers {
			if transfer.Reason == ledger.Late {
				days = append(days, transfer.Effective())
			}
		}
	}
	if len(days) == 0 {
		return nil
	}
	return postgres.EnsureDays(ctx, tx, days...)
}

// NoteApplied stores the ranges that the transaction applied, for the Checker.
func (s *Service) NoteApplied(ctx context.Context, tx pgx.Tx, ranges []ledger.Range) error {
	if err := postgres.SaveRanges(ctx, tx, ranges); err != nil {
		return fmt.Errorf("cannot save the applied ranges: %w", err)
	}
	return nil
}

func daysOf(charges []ledger.Charge) []time.Time {
	days := make([]time.Time, len(charges))
	for i, charge := range charges {
		days[i] = charge.Cause.At
	}
	return days
}

func countByOrganization(charges []ledger.Charge) map[string]int {
	charged := map[string]int{}
	for i := range charges {
		charged[charges[i].Organization]++
	}
	return charged
}

// open loads the books of every period that the charges touch.
// Organizations with grants get all open books, as a charge of one uses
// up the grants of all.
func (s *Service) open(ctx context.Context, tx pgx.Tx, known map[string]ledger.Organization, charges []ledger.Charge) (map[string]*ledger.Books, error) {
	books, err := postgres.LoadBooks(ctx, tx, bookKeys(known, charges))
	if err != nil {
		return nil, err
	}
	granted := withGrants(known)
	if len(granted) == 0 {
		return unitofwork.Open(ctx, tx, known, nil, books)
	}
	open, err := postgres.LoadOpenBooks(ctx, tx, granted)
	if err != nil {
		return nil, err
	}
	maps.Copy(books, open)
	grants, err := postgres.LiveGrants(ctx, tx, slices.Collect(maps.Keys(granted)))
	if err != nil {
		return nil, err
	}
	return unitofwork.Open(ctx, tx, known, grants, books)
}

func bookKeys(known map[string]ledger.Organization, charges []ledger.Charge) map[postgres.BookKey]bool {
	keys, last := make(map[postgres.BookKey]bool, len(known)), make(map[string]calendar.Period, len(known))
	for i := range charges {
		id, at := charges[i].Organization, charges[i].Cause.At
		if last[id].Contains(at) { // almost always: charges are mostly of one open period
			continue
		}
		period := known[id].BookedIn(at)
		last[id], keys[postgres.BookKey{Organization: id, Start: period.Start}] = period, true
	}
	return keys
}

// withGrants returns the organizations with any grant left.
func withGrants(known map[string]ledger.Organization) map[string]ledger.Organization {
	granted := maps.Clone(known)
	maps.DeleteFunc(granted, func(_ string, o ledger.Organization) bool { return o.Pool == 0 })
	return granted
}

// Count adds the requests that ingest counted to the usage, each tally
// once. Tallies must be valid.
func (s *Service) Count(ctx context.Context, tx pgx.Tx, booked time.Time, tallies []ledger.Tally) error {
	if len(tallies) == 0 {
		return nil
	}
	fresh, err := postgres.TakeTallies(ctx, tx, booked, tallies)
	if err != nil {
		return fmt.Errorf("cannot find the tallies already counted: %w", err)
	}
	var uses []ledger.Use
	for _, tally := range fresh {
		uses = append(uses, tally.Counted()...)
	}
	if err := postgres.SaveUses(ctx, tx, uses); err != nil {
		return fmt.Errorf("cannot count requests: %w", err)
	}
	return nil
}

// Refuse saves refusals by quota with what they exhaust, and returns the
// events they cause. Refusals must be valid.
func (s *Service) Refuse(ctx context.Context, tx pgx.Tx, booked time.Time, refusals []ledger.Refusal) ([]ledger.Event, error) {
	if len(refusals) == 0 {
		return nil, nil
	}
	refusals = slices.Clone(refusals)
	opened, err := s.exhaust(ctx, tx, refusals)
	if err != nil {
		return nil, err
	}
	if err := postgres.SaveRefusals(ctx, tx, booked, refusals); err != nil {
		return nil, fmt.Errorf("cannot save refusals: %w", err)
	}
	if len(opened) == 0 {
		return nil, nil
	}
	if err := unitofwork.SaveOpened(ctx, tx, booked, opened); err != nil {
		return nil, err
	}
	return unitofwork.EventsOf(opened), nil
}

// exhaust opens the books that refusals exhaust, and notes so in both. An
// unknown organization has none, as its account is not published. A
// refusal that was published twice counts once.
func (s *Service) exhaust(ctx context.Context, tx pgx.Tx, refusals []ledger.Refusal) (map[string]*ledger.Books, error) {
	opened, err := s.openRefused(ctx, tx, refusals)
	if err != nil || len(opened) == 0 {
		return nil, err
	}
	fresh, err := postgres.UnsavedRefusals(ctx, tx, refusals)
	if err != nil {
		return nil, fmt.Errorf("cannot find the refusals already saved: %w", err)
	}
	for _, i := range fresh {
		if open := opened[refusals[i].Organization]; open != nil {
			if err := open.Refuse(&refusals[i]); err != nil {
				return nil, err
			}
		}
	}
	return opened, nil
}

func (s *Service) openRefused(ctx context.Context, tx pgx.Tx, refusals []ledger.Refusal) (map[string]*ledger.Books, error) {
	ids := exhaustedOf(refusals)
	if len(ids) == 0 {
		return nil, nil
	}
	known, err := postgres.LockKnown(ctx, tx, ids)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the books: %w", err)
	}
	keys := map[postgres.BookKey]bool{}
	for _, r := range refusals {
		if o, ok := known[r.Organization]; ok {
			keys[postgres.BookKey{Organization: o.ID, Start: o.PeriodAt(r.Cause.At).Start}] = true
		}
	}
	books, err := postgres.LoadBooks(ctx, tx, keys)
	if err != nil {
		return nil, fmt.Errorf("cannot open the books: %w", err)
	}
	opened, err := unitofwork.Open(ctx, tx, known, nil, books)
	if err != nil {
		return nil, fmt.Errorf("cannot open the books: %w", err)
	}
	return opened, nil
}

// exhaustedOf returns the organizations that refusals exhaust, sorted and
// unique.
func exhaustedOf(refusals []ledger.Refusal) (ids []string) {
	for _, r := range refusals {
		if r.Exhausts {
			ids = append(ids, r.Organization)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
