package pages

import (
	"errors"
	"net/http"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// errEnded means that whoever has signed in is no member any more, or that their session has ended: this process has not
// consumed that yet.
var errEnded = errors.New("the session has ended")

// Ended is errEnded where it is the caller, or their session, that is not found; see ProblemOf for the rest.
func Ended(err error) error {
	if errors.Is(err, tenants.ErrNotFound) {
		return errEnded
	}
	return ProblemOf(err, "session", "")
}

// Member is the one who has signed in.
func (k *Kit) Member(r *http.Request) (tenants.Member, error) {
	caller := CallerOf(r)
	member, err := k.Directory.Member(r.Context(), pg.Organization(caller.Organization), caller.ID)
	return member, Ended(err)
}
