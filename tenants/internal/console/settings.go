package console

import (
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

// pageSize is how many rows a list shows at once.
const pageSize = 50

// maxChoices is how many projects can be chosen from.
const maxChoices = 1000

// settings is what every page of the settings shows.
type settings struct {
	Member       tenants.Member
	Organization tenants.Organization
	Role         tenants.Role // as the session has it; pages offer what it may do
	Form         string       // the word of the form on the page, if it has one
}

func (c *console) settings(r *http.Request) (s settings, err error) {
	caller := callerOf(r)
	s = settings{Role: roleOf(r), Form: c.IDs()}
	if s.Member, err = c.member(r); err != nil {
		return s, err
	}
	s.Organization, err = c.Views.Organization(r.Context(), pg.Organization(caller.Organization), caller.Organization)
	return s, err
}

// shownRoom says how many of something there are and may be.
type shownRoom struct {
	Text string
	Full bool // there can't be more
}

// room is how many of something the organization has and may have.
func (c *console) room(r *http.Request, what tenants.Countable) (shownRoom, error) {
	room, err := c.Registrar.RoomFor(r.Context(), callerOf(r), what)
	if room.Full() {
		return shownRoom{tenants.LimitReached{What: what, Limit: room.Limit}.Error(), true}, err
	}
	return shownRoom{Text: fmt.Sprintf("%d of at most %d %s.", room.Have, room.Limit, what)}, err
}

// placeOf is where a list goes on.
func placeOf(r *http.Request) (place postgres.Position, err error) {
	cursor := r.URL.Query().Get("cursor")
	if cursor == "" {
		return place, nil
	}
	return place, httpapi.DecodeCursor(r, cursor, &place)
}

// problemOf is how an error about what, which the reader calls id, is shown. Faults of a form are shown beside its fields
// and do not come here.
func problemOf(err error, what, id string) error {
	var full tenants.LimitReached
	switch {
	case errors.As(err, &full):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", full.Error())
	case errors.Is(err, tenants.ErrNotFound):
		return httpapi.NotFound(what, id)
	case errors.Is(err, tenants.ErrForbidden):
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"Your role was changed meanwhile and may not do this any more. Ask an owner.")
	case errors.Is(err, tenants.ErrLastOwner):
		return httpapi.NewProblem(http.StatusConflict, "last_owner",
			"This is the only owner of the organization, or the only one who could sign in where passwords are switched off. "+
				"Make another member owner first, who has a passkey or uses the identity provider.")
	case errors.Is(err, registrar.ErrPasswordsOff):
		return httpapi.NewProblem(http.StatusConflict, "passwords_off",
			"Your organization has switched passwords off: members sign in with passkeys or by the identity provider.")
	case errors.Is(err, registrar.ErrLastWay):
		return httpapi.NewProblem(http.StatusConflict, "last_way",
			"This passkey is the only way in that you have while passwords are switched off. Add another one first.")
	case errors.Is(err, tenants.ErrSettled):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"The invitation was accepted or revoked before. Make another one.")
	case errors.Is(err, tenants.ErrReused):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"This form was sent before with other values. Open the page again and fill it in anew.")
	case errors.Is(err, eventstore.ErrConflict):
		return httpapi.Unavailable("Too many changes at once. Go back and send the form again.", time.Second)
	}
	return err
}

// faultOf is the fault of one field, in words, or "".
func faultOf(err error, field string) string {
	var invalid tenants.Invalid
	if !errors.As(err, &invalid) {
		return ""
	}
	for _, fault := range invalid {
		if fault.Field == field {
			return sentence(fault.Detail) + " " + fault.Fix
		}
	}
	return ""
}

// sentence is text with a capital letter: faults begin with the name of the field, as the API has it.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

func isInvalid(err error) bool {
	var invalid tenants.Invalid
	return errors.As(err, &invalid)
}
