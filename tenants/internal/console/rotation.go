package console

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
)

// overlaps are the choices of how long a rotated key goes on, in seconds.
var overlaps = [][2]string{
	{"0", "Not at all: it ends at once"}, {"3600", "1 hour"}, {"86400", "24 hours"}, {"604800", "7 days"},
}

const overlapDefault = "86400"

type rotateKeyPage struct {
	settings
	Key     shownKey
	Overlap ui.Field
}

func (c *console) showRotateAPIKey(w http.ResponseWriter, r *http.Request) error {
	return c.writeRotateAPIKey(w, r, http.StatusOK, overlapDefault, nil)
}

func (c *console) writeRotateAPIKey(w http.ResponseWriter, r *http.Request, status int, overlap string, fault error) error {
	shown, err := c.settings(r)
	if err != nil {
		return err
	}
	key, err := c.keyToChange(r)
	if err != nil {
		return err
	}
	c.pages.Write(w, r, status, "api-key-rotate", ui.View{
		Title: "Rotate an API key", Tabs: tabs(r, apiKeysPath),
		Data: rotateKeyPage{settings: shown, Key: c.show(key), Overlap: ui.Field{
			Name: "overlap_seconds", Label: "The old key goes on for", Fault: faultOf(fault, "overlap_seconds"),
			Choices: ui.Choose(overlap, overlaps...), Hint: "So that its holders can change over. It never goes on beyond its own end.",
		}},
	})
	return nil
}

// rotateAPIKey shows the new key in its answer, as createAPIKey does.
func (c *console) rotateAPIKey(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	key, err := c.keyToChange(r)
	if err != nil {
		return err
	}
	text := r.PostForm.Get("overlap_seconds")
	seconds, fault := strconv.ParseInt(text, 10, 32)
	if fault != nil {
		return c.writeRotateAPIKey(w, r, http.StatusUnprocessableEntity, overlapDefault, tenants.Invalid{{
			Field: "overlap_seconds", Detail: fmt.Sprintf("The time is %q.", text), Fix: "Choose one of the list."}})
	}
	rotation, err := c.Registrar.RotateAPIKey(r.Context(), c.requestOf(r), key.ID, time.Duration(seconds)*time.Second)
	if isInvalid(err) {
		return c.writeRotateAPIKey(w, r, http.StatusUnprocessableEntity, overlapDefault, err)
	}
	if err != nil {
		return keyProblem(err, key.ID)
	}
	key.APIKey = rotation.Old
	old := c.show(key)
	return c.writeCreated(w, r, rotation.New, &old, rotation.Secret)
}

// keyProblem is how the reader is told why a key can't be rotated or changed.
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
	return problemOf(err, "API key", id)
}
