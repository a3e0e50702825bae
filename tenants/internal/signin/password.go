package signin

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// ErrSignIn means that no member has that address and password. It
// does not reveal which is wrong, and takes the same time for both.
var ErrSignIn = errors.New("no member has this address and password")

// ErrPassword means that the given password is not the member's.
var ErrPassword = errors.New("the password is not the member's")

// Passwords decides about passwords of members.
type Passwords struct{ *base }

// Off reports whether an organization has switched passwords off.
func (p *Passwords) Off(ctx context.Context, organization string) (bool, error) {
	return p.passwordsOff(ctx, p.Work.Views, organization)
}

// SignIn starts a session for the member with an address and a
// password, or fails with ErrSignIn.
func (p *Passwords) SignIn(ctx context.Context, request unitofwork.Request, email string, chosen tenants.Password) (tenants.SignInResult, error) {
	member, err := p.authenticate(ctx, request, email, chosen)
	if err != nil {
		return tenants.SignInResult{}, err
	}
	return p.completeSignIn(ctx, request.By(member), member, tenants.ByPassword)
}

// authenticate compares a password with that of
// the member with the address, or with a dummy.
func (p *Passwords) authenticate(ctx context.Context, request unitofwork.Request, email string, shown tenants.Password) (tenants.Member, error) {
	member, err := p.member(ctx, email)
	if errors.Is(err, tenants.ErrNotFound) {
		if err := p.Config.Passwords.MatchDummy(ctx, askerOf(request), shown); err != nil {
			return tenants.Member{}, err
		}
		return tenants.Member{}, ErrSignIn
	}
	if err != nil {
		return tenants.Member{}, err
	}
	return member, p.matches(ctx, request, member, shown)
}

// matches is nil for the member's password, and ErrSignIn for another.
func (p *Passwords) matches(ctx context.Context, request unitofwork.Request, member tenants.Member, shown tenants.Password) error {
	right, err := p.Config.Passwords.Matches(ctx, askerOf(request), member.PasswordHash, shown)
	if err != nil {
		return fmt.Errorf("cannot compare the password of %q: %w", member.ID, err)
	}
	if !right {
		return ErrSignIn
	}
	return nil
}

// Confirm lets the signed-in caller prove their identity again,
// or fails with ErrSignIn. The secret is the session's new one.
func (p *Passwords) Confirm(ctx context.Context, request unitofwork.Request, session string, shown tenants.Password) (tenants.Session, tenants.Secret, error) {
	member, err := p.caller(ctx, request)
	if err == nil {
		err = p.matches(ctx, request, member, shown)
	}
	if err != nil {
		return tenants.Session{}, tenants.Secret{}, err
	}
	return p.confirm(ctx, request, session, tenants.ByPassword)
}

// caller is the calling member; ErrPasswordsOff if
// their organization has switched passwords off.
func (p *Passwords) caller(ctx context.Context, request unitofwork.Request) (tenants.Member, error) {
	member, err := p.Members(p.Work.Views).Member(ctx, pg.Organization(request.Caller.Organization), request.Caller.ID)
	if err == nil {
		err = p.allowed(ctx, p.Work.Views, member.Organization)
	}
	return member, err
}

// Change sets the password of the caller, who shows the
// previous one, and ends the caller's other sessions. session
// is the id of the caller's own. It fails with ErrPassword.
func (p *Passwords) Change(ctx context.Context, request unitofwork.Request, session string, before, chosen tenants.Password) error {
	cmd := tenants.ChangePassword{Password: chosen, At: p.Work.Now()}
	if err := cmd.Check(); err != nil {
		return err
	}
	member, err := p.caller(ctx, request)
	if err != nil {
		return err
	}
	if err := p.checkUncommon(ctx, chosen, member); err != nil {
		return err
	}
	right, err := p.Config.Passwords.Matches(ctx, askerOf(request), member.PasswordHash, before)
	if err == nil && !right {
		err = ErrPassword
	}
	if err != nil {
		return fmt.Errorf("change the password of %q: %w", member.ID, err)
	}
	if cmd.PasswordHash, err = p.Config.Passwords.Hash(ctx, askerOf(request), chosen); err != nil {
		return err
	}
	cmd.Before = member.PasswordHash
	return p.change(ctx, request, session, member, cmd)
}

func (p *Passwords) change(ctx context.Context, request unitofwork.Request, session string, member tenants.Member, cmd tenants.ChangePassword) error {
	u, err := p.Work.Begin(ctx, member.Organization, request)
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	_, err = unitofwork.Change(ctx, u, memberStream(member),
		func(m tenants.Member) ([]tenants.Event, error) { return m.ChangePassword(cmd) })
	if errors.Is(err, tenants.ErrNotFound) {
		return ErrPassword // changed while this one was compared
	}
	if err != nil {
		return err
	}
	if err := endAll(ctx, u, member, "the password was changed", session, request.Devices); err != nil {
		return err
	}
	return u.Commit(ctx)
}

// checkUncommon refuses a password that is easy to guess
// from facts about the member and the organization.
func (p *Passwords) checkUncommon(ctx context.Context, chosen tenants.Password, member tenants.Member) error {
	found, err := p.Organizations(p.Work.Views).Organization(ctx, tenants.Installation, member.Organization)
	if err != nil {
		return err
	}
	return password.CheckCommon(chosen, found.Name, member.Email, member.Name)
}

// askerOf is the asker of a request's hash.
func askerOf(r unitofwork.Request) password.Asker {
	switch {
	case r.Device.Known():
		return password.Known(r.Device.Organization)
	case r.Caller.ID != "":
		return password.Known(r.Caller.Organization)
	}
	return password.Anonymous(httpapi.ClientNetwork(r.Address).String())
}
