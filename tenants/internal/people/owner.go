package people

import (
	"context"
	"errors"
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

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
