package balances

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A Balance is what an organization may use and has used, and the
// positions of the log that it counts.
type Balance struct {
	Organization ledger.Organization
	Plan         ledger.Plan
	Terms        ledger.Terms
	Book         ledger.Book
	Applied      contract.Positions
	At           time.Time
	Booking      *Booking // nil: of a past instant
}

// State returns the organization's state.
func (b Balance) State() string { return b.Organization.State(b.Book, b.At) }

// longestBooking exceeds the time of a booking transaction, which the bus limits.
const longestBooking = 2 * time.Minute

// Balance reads the balance of now or of an instant. For a past instant
// it never changes.
func (s *Service) Balance(ctx context.Context, organization string, at time.Time) (balance Balance, err error) {
	if !at.IsZero() && s.Reads.Clock().Sub(at) < longestBooking {
		if err := s.awaitBooked(ctx, organization); err != nil {
			return Balance{}, err
		}
	}
	if at.IsZero() {
		return s.runningBalance(ctx, organization)
	}
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		balance, err = s.balanceAt(ctx, tx, organization, at)
		return err
	})
	return balance, err
}

// runningBalance returns the current balance and how far the log is booked.
func (s *Service) runningBalance(ctx context.Context, organization string) (balance Balance, err error) {
	end, unknown := s.Waiter.recentEnd(ctx)
	var loaded postgres.BalanceSnapshot
	err = s.Reads.ReadBatch(ctx, organization, func(batch *pgx.Batch, organization pg.Organization) {
		loaded.Queue(batch, organization, s.Reads.Clock().UTC())
	})
	if err != nil {
		return balance, err
	}
	balance, err = s.balanceOf(loaded)
	balance.Booking = bookingOf(loaded, end, unknown == nil, s.Reads.Clock())
	return balance, err
}

// awaitBooked waits until no later booking has a time before the call.
func (s *Service) awaitBooked(ctx context.Context, organization string) error {
	release, err := s.Reads.Limiter.Acquire(ctx, organization)
	if err != nil {
		return err
	}
	defer release()
	if err := postgres.AwaitApplied(ctx, s.Reads.Pool); err != nil {
		return err
	}
	if err := postgres.AwaitBooks(ctx, s.Reads.Pool, organization); err != nil {
		return snapshot.NoOrganization(err)
	}
	return nil
}

// Running reads the current balance in a snapshot of the organization.
func (s *Service) Running(ctx context.Context, tx pgx.Tx, organization pg.Organization) (Balance, error) {
	loaded, err := postgres.LoadBalanceSnapshot(ctx, tx, organization, s.Reads.Clock().UTC())
	if err != nil {
		return Balance{}, err
	}
	return s.balanceOf(loaded)
}

func (s *Service) balanceOf(loaded postgres.BalanceSnapshot) (Balance, error) {
	now := loaded.Organization.Now(loaded.At)
	if !loaded.Found || !loaded.Organization.HasPlanAt(now) {
		return Balance{}, ledger.ErrNoOrganization
	}
	return s.balance(loaded.Organization, now, loaded.Applied, loaded.Books...)
}

// balanceAt reads the balance of an instant's period, as booked by then.
func (s *Service) balanceAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, at time.Time) (Balance, error) {
	o, err := snapshot.OrganizationAt(ctx, tx, organization, at)
	if err != nil {
		return Balance{}, err
	}
	period := o.PeriodAt(at)
	if period.Start.Before(s.Kept.TransfersSince(s.Reads.Clock())) {
		return Balance{}, ledger.ErrNotKept
	}
	balances, err := postgres.BalancesAt(ctx, tx, organization, period, at)
	if err != nil {
		return Balance{}, err
	}
	applied, err := postgres.PositionsAt(ctx, tx, at)
	if err != nil {
		return Balance{}, err
	}
	if o.Pool, err = postgres.PoolAt(ctx, tx, organization, o.Pool, at); err != nil {
		return Balance{}, err
	}
	if balances == (ledger.Balances{}) {
		return s.balance(o, at, applied)
	}
	return s.balance(o, at, applied, ledger.Book{Period: period, Balances: balances})
}

func (s *Service) balance(o ledger.Organization, at time.Time, applied contract.Positions, books ...ledger.Book) (Balance, error) {
	plan := o.Plans.At(at)
	book, err := ledger.OpenBooks(o, nil, books...).At(at)
	return Balance{Organization: o, Plan: plan, Terms: plan.Terms(), Book: book, Applied: applied, At: at}, err
}

// A Service reads balances.
type Service struct {
	Reads *snapshot.Reader
	Lists *snapshot.Reader // of transfers
	Kept  ledger.Retention

	Waiter *Waiter
}

const (
	endMaxAge  = time.Second // of the log's end, where it only shows lag
	endTimeout = time.Second // for the brokers to answer
)

// A Booking is how far the log is booked.
type Booking struct {
	Verified contract.Positions // ranges below are checked
	Known    bool               // false: no broker answered, the rest is unknown
	Behind   int64              // records in the log that are not booked
	Lag      time.Duration      // upper bound of their age
}

// bookingOf returns how far the log is booked. end is the log's end
// before the snapshot, if known.
func bookingOf(loaded postgres.BalanceSnapshot, end snapshot.End, known bool, now time.Time) *Booking {
	b := &Booking{Verified: loaded.Verified, Known: known}
	if !known {
		return b
	}
	for partition, next := range end.Next {
		more := next - loaded.Applied[partition]
		if more <= 0 {
			continue
		}
		accepted, found := loaded.Accepted[partition]
		b.Behind, b.Known = b.Behind+more, b.Known && found
		b.Lag = max(b.Lag, now.Sub(accepted))
	}
	if !b.Known {
		b.Lag = 0 // nothing is booked of a partition
	}
	return b
}

// Funds returns what an organization's usage draws on, in order of use.
func (s *Service) Funds(ctx context.Context, organization string) (found []ledger.Fund, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) error {
		balance, err := s.Running(ctx, tx, organization)
		if err != nil {
			return err
		}
		grants, err := postgres.LiveGrants(ctx, tx, []string{balance.Organization.ID})
		found = balance.Book.Funds(grants[balance.Organization.ID], balance.At)
		return err
	})
	return found, err
}

// A latest caches a value that is used more often than read. One caller
// at a time reads it.
type latest[T any] struct {
	reading sync.Mutex
	last    atomic.Pointer[dated[T]]
}

// A dated value was read at an instant or later.
type dated[T any] struct {
	at    time.Time
	value T
	err   error
}

// since returns a value read at an instant or later. It waits for a running read.
func (l *latest[T]) since(ctx context.Context, instant time.Time, clock func() time.Time, read func(context.Context) (T, error)) (T, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if last := l.last.Load(); last != nil && last.err == nil && !last.at.Before(instant) {
		return last.value, nil
	}
	return l.read(ctx, clock(), read)
}

// recent is since without a wait for other callers or for a read that
// has just failed. Under steady use none waits: a value up to twice as
// old is returned while a new one is read.
func (l *latest[T]) recent(ctx context.Context, age time.Duration, clock func() time.Time, read func(context.Context) (T, error)) (value T, err error) {
	now, last := clock(), l.last.Load()
	if last != nil && now.Sub(last.at) <= age {
		return last.value, last.err
	}
	if !l.reading.TryLock() {
		if last == nil {
			return value, errReading
		}
		return last.value, last.err
	}
	if last != nil && last.err == nil && now.Sub(last.at) < 2*age {
		go l.refresh(context.WithoutCancel(ctx), now, read)
		return last.value, nil
	}
	defer l.reading.Unlock()
	return l.read(ctx, now, read)
}

// refresh reads in the background. It holds the lock.
func (l *latest[T]) refresh(ctx context.Context, at time.Time, read func(context.Context) (T, error)) {
	defer l.reading.Unlock()
	_, _ = l.read(ctx, at, read) // the next caller gets the error
}

var errReading = errors.New("it is being read for the first time")

func (l *latest[T]) read(ctx context.Context, at time.Time, read func(context.Context) (T, error)) (T, error) {
	value, err := read(ctx)
	l.last.Store(&dated[T]{at, value, err})
	return value, err
}

// Transfers lists an organization's transfers, the latest first.
func (s *Service) Transfers(ctx context.Context, organization string, query postgres.TransferQuery) (found postgres.TransferPage, err error) {
	err = s.Lists.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err := snapshot.Exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err = postgres.Transfers(ctx, tx, organization, query)
		return err
	})
	return found, err
}

// An Overview is a balance and transfers that agree with it.
type Overview struct {
	Balance   Balance
	Transfers []postgres.BookedTransfer
}

// Overview reads the balance of now and transfers.
func (s *Service) Overview(ctx context.Context, organization string, query postgres.TransferQuery) (found Overview, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if found.Balance, err = s.Running(ctx, tx, organization); err != nil {
			return err
		}
		page, err := postgres.Transfers(ctx, tx, organization, query)
		found.Transfers = page.Transfers
		return err
	})
	return found, err
}
