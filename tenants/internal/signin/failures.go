package signin

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// failuresPrefix is the prefix of reports' ids.
const failuresPrefix = "sif_"

// Bounds of counting failed sign-ins. They are counted by address
// in memory and reported later, for addresses of members: an
// attempt does the same work for known and unknown addresses.
const (
	maxPending     = 4096 // addresses
	failuresPerTry = 100
	failuresEvery  = 2 * time.Second
)

// Failures counts failed sign-ins, and reports
// them in the audit. Safe for concurrent use.
type Failures struct {
	*base

	mu      sync.Mutex
	pending map[string]tenants.SignInFailures // by normal address; bounded by maxPending
}

// Wrong counts a wrong password for an address, from a network.
func (f *Failures) Wrong(email, network string) {
	f.add(email, tenants.SignInFailures{Failed: 1, Networks: []string{network}})
}

// Refused counts an attempt for an address that was refused after too many.
func (f *Failures) Refused(email, network string) {
	f.add(email, tenants.SignInFailures{Refused: 1, Networks: []string{network}})
}

func (f *Failures) add(email string, one tenants.SignInFailures) {
	if !tenants.IsEmail(email) {
		return
	}
	email, one.Since = tenants.NormalEmail(email), f.Work.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	counted, known := f.pending[email]
	if !known && len(f.pending) >= maxPending {
		f.Dropped()
		return
	}
	f.pending[email] = counted.Add(one)
}

// Run reports failures until ctx ends, and once more then.
func (f *Failures) Run(ctx context.Context) error {
	ticker := time.NewTicker(failuresEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.reportLogged(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), failuresEvery)
			defer cancel()
			f.reportLogged(last)
			return nil
		}
	}
}

func (f *Failures) reportLogged(ctx context.Context) {
	if err := f.reportDue(ctx); err != nil && ctx.Err() == nil {
		f.Logger.Warn("cannot report failed sign-ins", slog.String("error", err.Error()))
	}
}

// reportDue stores some of the counts, and reports due ones.
func (f *Failures) reportDue(ctx context.Context) error {
	counted := f.take()
	members, err := f.membersOf(ctx, counted)
	if err != nil {
		f.putBack(counted)
		return err
	}
	var errs []error
	for _, member := range members {
		errs = append(errs, f.keep(ctx, member.Organization, member.ID, counted[member.Email]))
	}
	due, err := f.store.DueSignInFailures(ctx, f.Work.Now().Add(-tenants.FailureReportInterval), failuresPerTry)
	errs = append(errs, err)
	for _, old := range due {
		errs = append(errs, f.keep(ctx, old.Organization, old.Member, tenants.SignInFailures{}))
	}
	return errors.Join(errs...)
}

func (f *Failures) membersOf(ctx context.Context, counted map[string]tenants.SignInFailures) ([]tenants.Member, error) {
	if len(counted) == 0 {
		return nil, nil
	}
	emails := make([]string, 0, len(counted))
	for email := range counted {
		emails = append(emails, email)
	}
	return f.Members(f.Work.Views).MembersByEmail(ctx, emails)
}

// take removes and returns some of the counts.
func (f *Failures) take() map[string]tenants.SignInFailures {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := map[string]tenants.SignInFailures{}
	for email, counted := range f.pending {
		if len(taken) == failuresPerTry {
			break
		}
		taken[email] = counted
		delete(f.pending, email)
	}
	return taken
}

func (f *Failures) putBack(counted map[string]tenants.SignInFailures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for email, failures := range counted {
		f.pending[email] = failures.Add(f.pending[email])
	}
}

// keep adds to the failures of a member, and
// reports them in the audit if that is due.
func (f *Failures) keep(ctx context.Context, organization, member string, more tenants.SignInFailures) error {
	request := unitofwork.Request{Caller: tenants.Caller{ID: "sign-in", Organization: organization}, Kind: tenants.SystemActor}
	u, err := f.Work.Begin(ctx, organization, request)
	if errors.Is(err, tenants.ErrNotFound) {
		return nil // to be deleted: nobody can sign in there
	}
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	failures, err := NewStore(u.Reader()).SignInFailures(ctx, pg.Organization(organization), member)
	if err != nil {
		return err
	}
	if failures = failures.Add(more); failures.Due(u.Now()) {
		if err := report(ctx, u, failures); err != nil {
			return err
		}
		failures = failures.Reported(u.Now())
	}
	if err := keepSignInFailures(ctx, u.Tx(), failures); err != nil {
		return err
	}
	return u.Commit(ctx)
}

// report writes one line in the audit, in a stream of
// its own, so that a long attack makes no long one.
func report(ctx context.Context, u *unitofwork.Unit, failures tenants.SignInFailures) error {
	id := failuresPrefix + u.IDs()
	event := failures.Report(id, u.Now())
	_, err := unitofwork.Change(ctx, u, unitofwork.Stream(failures.Organization, "sign-in-failures", id),
		func(tenants.SignInFailures) ([]tenants.Event, error) { return []tenants.Event{event}, nil })
	return err
}
