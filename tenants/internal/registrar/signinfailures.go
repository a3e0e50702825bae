package registrar

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// Bounds of counting failed sign-ins. They are counted by address in memory and told later, of whichever are members':
// so that an attempt does the same work whether its address is somebody's or not.
const (
	maxPending     = 4096 // addresses
	failuresPerTry = 100
	failuresEvery  = 2 * time.Second
)

// Failures counts failed sign-ins, and tells of them in the audit. Safe for concurrent use.
type Failures struct {
	registrar *Registrar
	logger    *slog.Logger
	dropped   func() // is told of each failure that was not counted

	mu      sync.Mutex
	pending map[string]tenants.SignInFailures // by normal address
}

// NewFailures returns failures that have counted nothing.
func (r *Registrar) NewFailures(dropped func(), logger *slog.Logger) *Failures {
	return &Failures{registrar: r, logger: logger, dropped: dropped, pending: map[string]tenants.SignInFailures{}}
}

// Wrong counts a wrong password for an address, from a network.
func (f *Failures) Wrong(email, network string) {
	f.add(email, tenants.SignInFailures{Failed: 1, Networks: []string{network}})
}

// Refused counts an attempt for an address that was refused because there had been too many.
func (f *Failures) Refused(email, network string) {
	f.add(email, tenants.SignInFailures{Refused: 1, Networks: []string{network}})
}

func (f *Failures) add(email string, one tenants.SignInFailures) {
	if !tenants.IsEmail(email) {
		return
	}
	email, one.Since = tenants.NormalEmail(email), f.registrar.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	counted, known := f.pending[email]
	if !known && len(f.pending) >= maxPending {
		f.dropped()
		return
	}
	f.pending[email] = counted.Add(one)
}

// Run tells of failures until ctx ends, and once more then.
func (f *Failures) Run(ctx context.Context) error {
	ticker := time.NewTicker(failuresEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.tellLogged(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), failuresEvery)
			defer cancel()
			f.tellLogged(last)
			return nil
		}
	}
}

func (f *Failures) tellLogged(ctx context.Context) {
	if err := f.tell(ctx); err != nil && ctx.Err() == nil {
		f.logger.Warn("cannot tell of failed sign-ins", slog.String("error", err.Error()))
	}
}

// tell keeps some of what was counted, and tells of those of whom it is time.
func (f *Failures) tell(ctx context.Context) error {
	counted := f.take()
	members, err := f.membersOf(ctx, counted)
	if err != nil {
		f.putBack(counted)
		return err
	}
	var errs []error
	for _, member := range members {
		errs = append(errs, f.registrar.keepFailures(ctx, member.Organization, member.ID, counted[member.Email]))
	}
	due, err := f.registrar.Views.DueSignInFailures(ctx, f.registrar.now().Add(-tenants.FailuresTold), failuresPerTry)
	errs = append(errs, err)
	for _, old := range due {
		errs = append(errs, f.registrar.keepFailures(ctx, old.Organization, old.Member, tenants.SignInFailures{}))
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
	return f.registrar.Views.MembersByEmail(ctx, emails)
}

// take returns some of what was counted, and counts them no more.
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

// keepFailures adds to the failures of a member, and tells of them where it is time.
func (r *Registrar) keepFailures(ctx context.Context, organization, member string, more tenants.SignInFailures) error {
	request := Request{Caller: tenants.Caller{ID: "sign-in", Organization: organization}, Kind: tenants.SystemActor}
	err := r.inTurn(ctx, organization, request, func(t *turn) error {
		failures, err := t.views.SignInFailures(ctx, pg.Organization(organization), member)
		if err != nil {
			return err
		}
		if failures = failures.Add(more); failures.Due(t.now()) {
			if err := t.tellFailures(ctx, failures); err != nil {
				return err
			}
			failures = tenants.SignInFailures{Organization: organization, Member: member, ToldAt: t.now()}
		}
		return postgres.KeepSignInFailures(ctx, t.tx, failures)
	})
	return err
}

// tellFailures is one line in the audit. It is a stream of its own, so that an attack of years makes none long.
func (t *turn) tellFailures(ctx context.Context, failures tenants.SignInFailures) error {
	id := failuresPrefix + t.IDs()
	_, err := change(ctx, t, streamOf(failures.Organization, "sign-in-failures", id), func(tenants.SignInFailures) ([]tenants.Event, error) {
		return []tenants.Event{failures.Tell(id, t.now())}, nil
	})
	return err
}
