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

// ChooseMails has the caller, a member, get some kinds of mail
// about the account and no others.
func (s *Service) ChooseMails(ctx context.Context, request unitofwork.Request, wanted []tenants.MailKind) error {
	cmd := tenants.ChooseMails{Wanted: wanted, At: s.Work.Now()}
	_, err := unitofwork.Once(ctx, s.Work, request, tenants.MailsReceive, stream(request.Caller.Organization, request.Caller.ID),
		func(m tenants.Member) ([]tenants.Event, error) { return m.ChooseMails(cmd) })
	return err
}

// Unsubscribe ends a mailing, in the member's name. Again, and where the member
// or their organization is gone, it changes nothing.
func (s *Service) Unsubscribe(ctx context.Context, request unitofwork.Request, from unsubscribe.Mailing) error {
	member, err := s.store.Member(ctx, pg.Organization(from.Organization), from.Member)
	if err == nil && member.Gets(from.Kind) {
		err = s.unsubscribe(ctx, request.By(member), from)
	}
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return fmt.Errorf("end mail about %q to %q: %w", from.Kind, from.Member, err)
	}
	return nil
}

func (s *Service) unsubscribe(ctx context.Context, request unitofwork.Request, from unsubscribe.Mailing) error {
	u, err := s.Work.Begin(ctx, from.Organization, request)
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	_, err = unitofwork.Change(ctx, u, stream(from.Organization, from.Member),
		func(m tenants.Member) ([]tenants.Event, error) { return m.Unsubscribe(from.Kind, s.Work.Now()) })
	if err != nil {
		return err
	}
	return u.Commit(ctx)
}
