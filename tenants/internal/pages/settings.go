package pages

import (
	"net/http"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// MaxChoices is how many projects a form offers.
const MaxChoices = 1000

// Settings is what all settings pages show.
type Settings struct {
	Member       tenants.Member
	Organization tenants.Organization
	Role         tenants.Role // as in the session; pages offer what it may do
	Form         string       // idempotency key of the page's form, if any
}

// Settings finds what all settings pages show.
func (k *Kit) Settings(r *http.Request) (s Settings, err error) {
	caller := CallerOf(r)
	s = Settings{Role: RoleOf(r), Form: k.IDs()}
	if s.Member, err = k.Member(r); err != nil {
		return s, err
	}
	s.Organization, err = k.Directory.Organization(r.Context(), pg.Organization(caller.Organization), caller.Organization)
	return s, err
}
