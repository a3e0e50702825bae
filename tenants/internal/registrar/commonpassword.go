package registrar

import (
	"context"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
)

// product is a word that somebody who guesses here tries first.
const product = "weir"

// uncommon refuses a password of a member that is among the first that anybody would try who knows them and their
// organization.
func (r *Registrar) uncommon(ctx context.Context, chosen tenants.Password, organization, email, name string) error {
	found, err := r.Views.Organization(ctx, tenants.Installation, organization)
	if err != nil {
		return err
	}
	return notCommon(chosen, found.Name, email, name)
}

// uncommonOf is uncommon for somebody who is a member.
func (r *Registrar) uncommonOf(ctx context.Context, chosen tenants.Password, member tenants.Member) error {
	return r.uncommon(ctx, chosen, member.Organization, member.Email, member.Name)
}

func notCommon(chosen tenants.Password, about ...string) error {
	if !password.Common(chosen, append(about, product)...) {
		return nil
	}
	return tenants.Invalid{{
		Field: "password", Detail: "password is among the first that are guessed: it is a common one, a pattern of keys, or made of what is known of you.",
		Fix: "Use several words that have nothing to do with each other or with you.",
	}}
}
