package console

import (
	"errors"
	"net/http"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

// errEnded says that whoever has signed in is no member any more, or that their session has ended: the news has not come
// to this process yet.
var errEnded = errors.New("the session has ended")

// ended is errEnded where it is the caller, or their session, that is not found; see problemOf for the rest.
func ended(err error) error {
	if errors.Is(err, tenants.ErrNotFound) {
		return errEnded
	}
	return problemOf(err, "session", "")
}

// page answers as handle does. A browser whose session has ended forgets it: with the cookie it would be taken for signed in
// until the news is here, and led in circles.
func (c *console) page(handle handler) http.HandlerFunc {
	return c.pages.Handle(func(w http.ResponseWriter, r *http.Request) error {
		err := handle(w, r)
		if !errors.Is(err, errEnded) && !errors.Is(err, registrar.ErrRemoved) {
			return err
		}
		http.SetCookie(w, sessionCookie("", -1))
		http.Redirect(w, r, identity.SignInPath, http.StatusSeeOther)
		return nil
	})
}

// member is the one who has signed in.
func (c *console) member(r *http.Request) (tenants.Member, error) {
	caller := callerOf(r)
	member, err := c.Views.Member(r.Context(), pg.Organization(caller.Organization), caller.ID)
	return member, ended(err)
}
