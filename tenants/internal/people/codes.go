package people

import (
	"context"
	"errors"
	"strings"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
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
