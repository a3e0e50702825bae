package keys

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

// overlaps are the choices of an overlap, in seconds.
var overlaps = [][2]string{
	{"0", "Not at all: it ends at once"}, {"3600", "1 hour"}, {"86400", "24 hours"}, {"604800", "7 days"},
}

const overlapDefault = "86400"

type rotateKeyPage struct {
	pages.Settings
	Key     shownKey
	Overlap ui.Field
}

func (p Pages) showRotate(w http.ResponseWriter, r *http.Request) error {
	return p.writeRotate(w, r, http.StatusOK, overlapDefault, nil)
}

func (p Pages) writeRotate(w http.ResponseWriter, r *http.Request, status int, overlap string, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	key, err := p.keyToChange(r)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "api-key-rotate", ui.View{
		Title: "Rotate an API key", Tabs: pages.Tabs(r, pages.APIKeysPath),
		Data: rotateKeyPage{Settings: shown, Key: p.show(key), Overlap: ui.Field{
			Name: "overlap_seconds", Label: "The old key goes on for", Fault: pages.FaultOf(fault, "overlap_seconds"),
			Choices: ui.NewChoices(overlap, overlaps...), Hint: "So that its holders can change over. It never goes on beyond its own end.",
		}},
	})
	return nil
}

// rotate shows the new key in the response, as create does.
func (p Pages) rotate(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	key, err := p.keyToChange(r)
	if err != nil {
		return err
	}
	text := r.PostForm.Get("overlap_seconds")
	seconds, fault := strconv.ParseInt(text, 10, 32)
	if fault != nil {
		return p.writeRotate(w, r, http.StatusUnprocessableEntity, overlapDefault, tenants.Invalid{{
			Field: "overlap_seconds", Detail: fmt.Sprintf("The time is %q.", text), Fix: "Choose one of the list."}})
	}
	rotation, err := p.service.Rotate(r.Context(), p.RequestOf(r), key.ID, time.Duration(seconds)*time.Second)
	if pages.IsInvalid(err) {
		return p.writeRotate(w, r, http.StatusUnprocessableEntity, overlapDefault, err)
	}
	if err != nil {
		return keyProblem(err, key.ID)
	}
	key.APIKey = rotation.Old
	old := p.show(key)
	return p.writeCreated(w, r, rotation.New, &old, rotation.Secret)
}

// keyProblem is why a key can't be rotated or changed.
func keyProblem(err error, id string) error {
	conflict := func(code, text string) error { return httpapi.NewProblem(http.StatusConflict, code, text) }
	switch {
	case errors.Is(err, tenants.ErrShownOnce):
		return conflict("secret_shown_once", "This key was rotated already, and the new one was shown once. If you did not save it, rotate the new one.")
	case errors.Is(err, tenants.ErrKeyRotated):
		return conflict("api_key_rotated", "This key was rotated already: another one takes its place. Rotate that one, or revoke this one.")
	case errors.Is(err, tenants.ErrKeyRevoked):
		return conflict("api_key_revoked", "This key is revoked: it can't be rotated or changed. Create a new one.")
	case errors.Is(err, tenants.ErrKeyExpired):
		return conflict("api_key_expired", "This key has expired: it can't be rotated or changed. Create a new one.")
	}
	return pages.ProblemOf(err, "API key", id)
}
