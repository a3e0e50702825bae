package people

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
	"github.com/weirlog/weir/tenants/internal/unsubscribe"
)

// Mailings decides which mail members get.
// Its errors are those of unitofwork.Writer.
type Mailings struct {
	work  *unitofwork.Writer
	store Store
}

// NewMailings returns the mailings of members.
func NewMailings(work *unitofwork.Writer) *Mailings { return &Mailings{work, NewStore(work.Views)} }

// Choose sets the kinds of mail that the caller, a member, gets.
func (m *Mailings) Choose(ctx context.Context, request unitofwork.Request, wanted []tenants.MailKind) error {
	cmd := tenants.ChooseMails{Wanted: wanted, At: m.work.Now()}
	_, err := unitofwork.Once(ctx, m.work, request, tenants.MailsReceive, stream(request.Caller.Organization, request.Caller.ID),
		func(member tenants.Member) ([]tenants.Event, error) { return member.ChooseMails(cmd) })
	return err
}

// Unsubscribe ends a mailing, in the member's name. It is
// idempotent, also once the member or organization is gone.
func (m *Mailings) Unsubscribe(ctx context.Context, request unitofwork.Request, from unsubscribe.Mailing) error {
	member, err := m.store.Member(ctx, pg.Organization(from.Organization), from.Member)
	if err == nil && member.Receives(from.Kind) {
		err = m.unsubscribe(ctx, request.By(member), from)
	}
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return fmt.Errorf("end mail about %q to %q: %w", from.Kind, from.Member, err)
	}
	return nil
}

func (m *Mailings) unsubscribe(ctx context.Context, request unitofwork.Request, from unsubscribe.Mailing) error {
	u, err := m.work.Begin(ctx, from.Organization, request)
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	_, err = unitofwork.Change(ctx, u, stream(from.Organization, from.Member),
		func(member tenants.Member) ([]tenants.Event, error) {
			return member.Unsubscribe(from.Kind, m.work.Now())
		})
	if err != nil {
		return err
	}
	return u.Commit(ctx)
}
