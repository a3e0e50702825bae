package registrar

import (
	"context"
	"errors"
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
)

// firstTier is that of the organization that the first owner makes: whoever runs an installation is not to be limited by
// it from the start.
const firstTier = tenants.Scale

// ownerCodes is the stream of the codes for the first owner: there is one at a time.
func ownerCodes() eventstore.Stream {
	return streamOf(tenants.Installation, "owner-code", "first")
}

// IssueOwnerCode draws a code for the first owner of an installation without a member; the one of before is void. It
// fails with tenants.ErrFounded where there is a member.
func (r *Registrar) IssueOwnerCode(ctx context.Context, request Request) (code tenants.Secret, expires time.Time, err error) {
	if code, err = tenants.NewSecret(tenants.OwnerCodePrefix, r.Random); err != nil {
		return code, expires, err
	}
	cmd := tenants.IssueOwnerCode{Digest: code.Digest(), At: r.now()}
	err = r.inTurn(ctx, tenants.Installation, request, func(t *turn) (err error) {
		if cmd.Founded, err = t.views.Founded(ctx); err != nil {
			return err
		}
		issued, err := change(ctx, t, ownerCodes(), func(o tenants.OwnerCode) ([]tenants.Event, error) { return o.Issue(cmd) })
		expires = issued.ExpiresAt
		return err
	})
	return code, expires, err
}

// Found makes somebody the first owner who holds the code for that, of an organization with a name, and lets them in. It
// fails with tenants.ErrCode.
func (r *Registrar) Found(ctx context.Context, request Request, organization string, who Newcomer) (entry tenants.Entry, err error) {
	use := tenants.UseOwnerCode{Organization: organizationPrefix + r.IDs(), Member: memberPrefix + r.IDs(), At: r.now()}
	if use.Code, err = hashOf(tenants.OwnerCodePrefix, who.Code); err != nil {
		return entry, err
	}
	create := tenants.CreateOrganization{ID: use.Organization, Name: organization, Tier: firstTier, At: use.At}
	add := newcomer(who, use.Organization, tenants.Owner, use.Member, use.At)
	if err := r.checkFounding(ctx, use, create, add); err != nil {
		return entry, err
	}
	if err := password.CheckCommon(who.Password, organization, who.Email, who.Name); err != nil {
		return entry, err
	}
	if add.PasswordHash, err = r.Passwords.Hash(ctx, known(use.Organization), who.Password); err != nil {
		return entry, err
	}
	err = r.inTurn(ctx, tenants.Installation, request, func(t *turn) (err error) {
		t.as(tenants.Member{ID: add.ID, Organization: add.Organization, Role: add.Role})
		if err := t.useOwnerCode(ctx, use); err != nil {
			return err
		}
		_, err = change(ctx, t, streamOf(create.ID, "organization", create.ID), func(o tenants.Organization) ([]tenants.Event, error) { return o.Create(create) })
		if err != nil {
			return err
		}
		entry, err = t.letIn(ctx, add)
		return err
	})
	return entry, err
}

func (t *turn) useOwnerCode(ctx context.Context, use tenants.UseOwnerCode) (err error) {
	if use.Founded, err = t.views.Founded(ctx); err != nil {
		return err
	}
	_, err = change(ctx, t, ownerCodes(), func(o tenants.OwnerCode) ([]tenants.Event, error) { return o.Use(use) })
	return err
}

// checkFounding says what is wrong before any work is done: with the code, or else with what was typed, all of it. The
// name of the organization is called organization, because the person has one too.
func (r *Registrar) checkFounding(ctx context.Context, use tenants.UseOwnerCode, create tenants.CreateOrganization, add tenants.AddMember) error {
	code, _, err := eventstore.Load[tenants.OwnerCode](ctx, r.Events, ownerCodes())
	if err != nil {
		return err
	}
	founded, err := r.Views.Founded(ctx)
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
