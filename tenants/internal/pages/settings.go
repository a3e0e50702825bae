package pages

import (
	"fmt"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// PageSize is how many rows a list shows at once.
const PageSize = 50

// MaxChoices is how many projects can be chosen from.
const MaxChoices = 1000

// Settings is what every page of the settings shows.
type Settings struct {
	Member       tenants.Member
	Organization tenants.Organization
	Role         tenants.Role // as the session has it; pages offer what it may do
	Form         string       // the word of the form on the page, if it has one
}

// Settings finds what a page of the settings shows to whoever reads it.
func (k *Kit) Settings(r *http.Request) (s Settings, err error) {
	caller := CallerOf(r)
	s = Settings{Role: RoleOf(r), Form: k.IDs()}
	if s.Member, err = k.Member(r); err != nil {
		return s, err
	}
	s.Organization, err = k.Directory.Organization(r.Context(), pg.Organization(caller.Organization), caller.Organization)
	return s, err
}

// A ShownRoom says how many of something there are and may be.
type ShownRoom struct {
	Text string
	Full bool // there can't be more
}

// ShowRoom is a room in words.
func ShowRoom(room tenants.Room) ShownRoom {
	if room.Full() {
		return ShownRoom{tenants.LimitReached{What: room.What, Limit: room.Limit}.Error(), true}
	}
	return ShownRoom{Text: fmt.Sprintf("%d of at most %d %s.", room.Have, room.Limit, room.What)}
}

// PlaceOf is where a list goes on.
func PlaceOf(r *http.Request) (place query.Position, err error) {
	cursor := r.URL.Query().Get("cursor")
	if cursor == "" {
		return place, nil
	}
	return place, httpapi.DecodeCursor(r, cursor, &place)
}
