package people

import (
	"context"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// IssueReset draws a code by which a member whom the
// caller may access and manage sets a new password.
// It is stored nowhere, and the previous one is void.
func (c *Codes) IssueReset(ctx context.Context, request unitofwork.Request, id string) (member tenants.Member, code tenants.Secret, err error) {
	if code, err = tenants.NewSecret(tenants.ResetPrefix, c.work.Random); err != nil {
		return member, code, err
	}
	u, found, err := c.members.begin(ctx, request, id)
	if err != nil {
		return member, code, err
	}
	defer u.Rollback(ctx)
	by, err := u.Role(ctx)
	if err != nil {
		return member, code, err
	}
	cmd := tenants.IssueResetCode{By: request.Caller.ID, ByRole: by, Digest: code.Digest(), At: c.work.Now()}
	member, err = unitofwork.Change(ctx, u, stream(found.Organization, id),
		func(m tenants.Member) ([]tenants.Event, error) { return m.IssueResetCode(cmd) })
	if err != nil {
		return member, code, err
	}
	return member, code, u.Commit(ctx)
}

// IssueResetFor is IssueReset at the server, for
// the member of any organization with an address.
func (c *Codes) IssueResetFor(ctx context.Context, request unitofwork.Request, email string) (member tenants.Member, code tenants.Secret, err error) {
	if !tenants.IsEmail(email) {
		return member, code, tenants.ErrNotFound
	}
	if member, err = c.store.MemberByEmail(ctx, tenants.NormalEmail(email)); err != nil {
		return tenants.Member{}, code, err
	}
	return c.IssueReset(ctx, request, member.ID)
}

// Reset sets the password of a code's member, and removes all other
// access: sessions, passkeys and the identity at the provider.
// Where passwords are off it signs the member in instead, to add a
// passkey; else the result is empty. It fails with tenants.ErrCode.
func (c *Codes) Reset(ctx context.Context, request unitofwork.Request, code string, chosen tenants.Password) (entry tenants.SignInResult, err error) {
	member, cmd, off, err := c.prepareReset(ctx, code, chosen)
	if err != nil {
		return entry, err
	}
	u, err := c.work.Begin(ctx, member.Organization, request)
	if err != nil {
		return entry, err
	}
	defer u.Rollback(ctx)
	u.As(member)
	if err := c.reset(ctx, u, member, cmd); err != nil {
		return entry, err
	}
	if off {
		if entry, err = c.members.SignIns.StartSession(ctx, u, member, tenants.ByCode); err != nil {
			return tenants.SignInResult{}, err
		}
	}
	return entry, u.Commit(ctx)
}

// prepareReset finds the member of a code, and checks and hashes the
// password: that takes long, hence before the unit of work begins.
func (c *Codes) prepareReset(ctx context.Context, code string, chosen tenants.Password) (
	member tenants.Member, cmd tenants.ChangePassword, off bool, err error) {
	cmd.At = c.work.Now()
	if cmd.Code, err = hashOf(tenants.ResetPrefix, code); err != nil {
		return member, cmd, off, err
	}
	if member, err = c.store.MemberByResetCode(ctx, cmd.Code); err != nil {
		return member, cmd, off, codeUnknown(err)
	}
	if off, err = c.members.passwordsOff(ctx, c.work.Views, member.Organization); err != nil {
		return member, cmd, off, err
	}
	if cmd.Password, err = c.choose(off, chosen); err != nil {
		return member, cmd, off, err
	}
	if _, err = member.ResetPassword(cmd); err != nil {
		return member, cmd, off, err
	}
	who := tenants.AddMember{Organization: member.Organization, Email: member.Email, Name: member.Name, Password: cmd.Password}
	cmd.PasswordHash, err = c.members.hash(ctx, member.Organization, who)
	return member, cmd, off, err
}

func (c *Codes) reset(ctx context.Context, u *unitofwork.Unit, member tenants.Member, cmd tenants.ChangePassword) error {
	found, err := unitofwork.Load[tenants.Member](ctx, u, stream(member.Organization, member.ID))
	if err != nil {
		return err
	}
	if cmd.IssuerRole, err = c.roleOf(ctx, u, member.Organization, found.State.Reset.By); err != nil {
		return err
	}
	events, err := found.State.ResetPassword(cmd)
	if err != nil {
		return err
	}
	if err := unitofwork.Append(ctx, u, &found, events); err != nil {
		return err
	}
	if err := c.members.SignIns.EndSessions(ctx, u, member, "the password was reset"); err != nil {
		return err
	}
	return c.members.SignIns.RemovePasskeys(ctx, u, member)
}
