package people

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Codes admits people by a code: of an invitation, of the first
// owner, or of a reset. Its errors are those of unitofwork.Writer.
type Codes struct {
	members *Service
	work    *unitofwork.Writer
	store   Store
}

// NewCodes returns the codes of members.
func NewCodes(members *Service) *Codes { return &Codes{members, members.Work, members.store} }

// A Registration is the form of somebody with a code.
type Registration struct {
	Code     string // as pasted
	Email    string
	Name     string
	Password tenants.Password
}

// hashOf is the hash of a pasted code; tenants.ErrCode if it can't be one.
func hashOf(prefix, code string) (string, error) {
	secret, err := tenants.ParseSecret(prefix, strings.TrimSpace(code))
	if err != nil {
		return "", tenants.ErrCode
	}
	return secret.Digest().Hash, nil
}

func codeUnknown(err error) error {
	if errors.Is(err, tenants.ErrNotFound) {
		return tenants.ErrCode
	}
	return err
}

// choose is the password of somebody with a code: the
// chosen one, or a random one where passwords are off.
func (c *Codes) choose(off bool, chosen tenants.Password) (tenants.Password, error) {
	if !off {
		return chosen, nil
	}
	drawn, err := tenants.NewSecret("", c.work.Random)
	return tenants.Password(drawn.Reveal()), err
}

// addSignedIn adds a member and starts their first session.
func (c *Codes) addSignedIn(ctx context.Context, u *unitofwork.Unit, add tenants.AddMember) (entry tenants.SignInResult, err error) {
	member, err := unitofwork.Change(ctx, u, stream(add.Organization, add.ID),
		func(m tenants.Member) ([]tenants.Event, error) { return m.Add(add) })
	if err != nil {
		return entry, emailTaken(err, add.Email)
	}
	off, err := c.members.passwordsOff(ctx, u.Reader(), add.Organization)
	if err != nil {
		return entry, err
	}
	if off {
		return c.members.SignIns.StartSession(ctx, u, member, tenants.ByCode)
	}
	return c.members.SignIns.StartSession(ctx, u, member, tenants.ByPassword)
}

// roleOf is the present role of a code's issuer: a member's
// own, a token's, none for a removed or revoked one. All
// others acted at the server, where everything is allowed.
func (c *Codes) roleOf(ctx context.Context, u *unitofwork.Unit, organization, id string) (tenants.Role, error) {
	if strings.HasPrefix(id, memberPrefix) {
		role, err := RoleOf(ctx, u.Reader(), pg.Organization(organization), id)
		if errors.Is(err, tenants.ErrNotFound) {
			return "", nil
		}
		return role, err
	}
	token, err := c.tokenOf(ctx, u, organization, id)
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		return tenants.Owner, nil
	case err != nil || token.State() == tenants.Revoked:
		return "", err
	}
	return tenants.Caller{Organization: token.Organization}.Role(), nil
}

// tokenOf returns a service token of an organization, or an operator's,
// for which the unit leaves the organization for one query.
func (c *Codes) tokenOf(ctx context.Context, u *unitofwork.Unit, organization, id string) (tenants.ServiceToken, error) {
	registry := c.members.Registry(u.Reader())
	token, err := registry.ServiceToken(ctx, pg.Organization(organization), id)
	if !errors.Is(err, tenants.ErrNotFound) {
		return token, err
	}
	if err := pg.AsSystem(ctx, u.Tx()); err != nil {
		return token, err
	}
	if token, err = registry.ServiceToken(ctx, tenants.Installation, id); err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return token, err
	}
	return token, errors.Join(err, pg.AsOrganization(ctx, u.Tx(), pg.Organization(organization)))
}

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

// firstTier is the tier of the first owner's organization:
// it must not limit the installation's owner.
const firstTier = tenants.Scale

// ownerCodes is the stream of the codes for
// the first owner: there is one at a time.
func ownerCodes() eventstore.Stream {
	return unitofwork.Stream(tenants.Installation, "owner-code", "first")
}

// IssueOwnerCode draws a code for the first owner of an installation without
// members; the previous one is void. It fails with tenants.ErrHasMembers.
func (c *Codes) IssueOwnerCode(ctx context.Context, request unitofwork.Request) (code tenants.Secret, expires time.Time, err error) {
	if code, err = tenants.NewSecret(tenants.OwnerCodePrefix, c.work.Random); err != nil {
		return code, expires, err
	}
	cmd := tenants.IssueOwnerCode{Digest: code.Digest(), At: c.work.Now()}
	u, err := c.work.Begin(ctx, tenants.Installation, request)
	if err != nil {
		return code, expires, err
	}
	defer u.Rollback(ctx)
	if cmd.HasMembers, err = NewStore(u.Reader()).HasMembers(ctx); err != nil {
		return code, expires, err
	}
	issued, err := unitofwork.Change(ctx, u, ownerCodes(), func(o tenants.OwnerCode) ([]tenants.Event, error) { return o.Issue(cmd) })
	if err != nil {
		return code, expires, err
	}
	return code, issued.ExpiresAt, u.Commit(ctx)
}

// UseOwnerCode makes the holder of the code the first owner of a new
// organization, and signs them in. It fails with tenants.ErrCode.
func (c *Codes) UseOwnerCode(ctx context.Context, request unitofwork.Request, organization string, who Registration) (entry tenants.SignInResult, err error) {
	use := tenants.UseOwnerCode{Organization: c.members.Organizations.NewOrganizationID(), Member: memberPrefix + c.work.IDs(), At: c.work.Now()}
	if use.Code, err = hashOf(tenants.OwnerCodePrefix, who.Code); err != nil {
		return entry, err
	}
	create := tenants.CreateOrganization{ID: use.Organization, Name: organization, Tier: firstTier, At: use.At}
	add := registration(who, use.Organization, tenants.Owner, use.Member, use.At)
	if err := c.checkOwner(ctx, use, create, add); err != nil {
		return entry, err
	}
	if err := password.CheckCommon(who.Password, organization, who.Email, who.Name); err != nil {
		return entry, err
	}
	if add.PasswordHash, err = c.members.Passwords.Hash(ctx, password.Known(use.Organization), who.Password); err != nil {
		return entry, err
	}
	return c.createOwner(ctx, request, use, create, add)
}

func (c *Codes) createOwner(ctx context.Context, request unitofwork.Request, use tenants.UseOwnerCode, create tenants.CreateOrganization,
	add tenants.AddMember) (entry tenants.SignInResult, err error) {
	u, err := c.work.Begin(ctx, tenants.Installation, request)
	if err != nil {
		return entry, err
	}
	defer u.Rollback(ctx)
	u.As(tenants.Member{ID: add.ID, Organization: add.Organization, Role: add.Role})
	if use.HasMembers, err = NewStore(u.Reader()).HasMembers(ctx); err != nil {
		return entry, err
	}
	_, err = unitofwork.Change(ctx, u, ownerCodes(), func(o tenants.OwnerCode) ([]tenants.Event, error) { return o.Use(use) })
	if err != nil {
		return entry, err
	}
	if err := c.members.Organizations.CreateIn(ctx, u, create); err != nil {
		return entry, err
	}
	if entry, err = c.addSignedIn(ctx, u, add); err != nil {
		return tenants.SignInResult{}, err
	}
	return entry, u.Commit(ctx)
}

// checkOwner returns the fault of the code, or else all faults
// of the form, before any work is done. The organization's name
// has the field organization, since the person has a name too.
func (c *Codes) checkOwner(ctx context.Context, use tenants.UseOwnerCode, create tenants.CreateOrganization, add tenants.AddMember) error {
	code, _, err := eventstore.Load[tenants.OwnerCode](ctx, c.work.Events, ownerCodes())
	if err != nil {
		return err
	}
	founded, err := c.store.HasMembers(ctx)
	if err != nil {
		return err
	}
	if err := code.Admits(use.Code, founded, use.At); err != nil {
		return err
	}
	var faults tenants.Invalid
	if ofName, wrong := errors.AsType[tenants.Invalid](create.Check()); wrong {
		faults = append(faults, tenants.Fault{Field: "organization", Detail: ofName[0].Detail, Fix: ofName[0].Fix})
	}
	ofPerson, _ := errors.AsType[tenants.Invalid](add.Check())
	if faults = append(faults, ofPerson...); len(faults) > 0 {
		return faults
	}
	return nil
}
