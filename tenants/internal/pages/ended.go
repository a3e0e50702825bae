package pages

import (
	"errors"
	"net/http"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// errEnded means that the signed-in person was removed, or that
// the session has ended, which this process has not consumed yet.
var errEnded = errors.New("the session has ended")

// Ended is errEnded if the caller, or the session,
// is not found; see ProblemOf for the rest.
func Ended(err error) error {
	if errors.Is(err, tenants.ErrNotFound) {
		return errEnded
	}
	return ProblemOf(err, "session", "")
}

// Member is the signed-in member.
func (k *Kit) Member(r *http.Request) (tenants.Member, error) {
	caller := CallerOf(r)
	member, err := k.Directory.Member(r.Context(), pg.Organization(caller.Organization), caller.ID)
	return member, Ended(err)
}
