package pages

import (
	"net/http"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// MaxChoices is how many projects can be chosen from.
const MaxChoices = 1000

// Settings is what every page of the settings shows.
type Settings struct {
	Member       tenants.Member
	Organization tenants.Organization
	Role         tenants.Role // as the session has it; pages offer what it may do
	Form         string       // the word of the form on the page, if it has one
}

// Settings finds what every page of the settings shows.
func (k *Kit) Settings(r *http.Request) (s Settings, err error) {
	caller := CallerOf(r)
	s = Settings{Role: RoleOf(r), Form: k.IDs()}
	if s.Member, err = k.Member(r); err != nil {
		return s, err
	}
	s.Organization, err = k.Directory.Organization(r.Context(), pg.Organization(caller.Organization), caller.Organization)
	return s, err
}
