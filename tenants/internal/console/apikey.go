package console

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// shownKey is a key as a list shows it.
type shownKey struct {
	postgres.ListedAPIKey
	Shown string // as much of the key as is kept
	May   string // what it may do, in words
	State tenants.State
}

type apiKeysPage struct {
	settings
	Keys  []shownKey
	Pager ui.Pager
	Room  shownRoom
}

func (c *console) showAPIKeys(w http.ResponseWriter, r *http.Request) error {
	shown, err := c.settings(r)
	if err != nil {
		return err
	}
	before, err := placeOf(r)
	if err != nil {
		return err
	}
	found, err := c.Views.NewestAPIKeys(r.Context(), pg.Organization(callerOf(r).Organization), before, pageSize+1)
	if err != nil {
		return err
	}
	list := httpapi.NewList(r, found, pageSize, func(last postgres.ListedAPIKey) any {
		return postgres.Position{At: last.IssuedAt, ID: last.ID}
	})
	page := apiKeysPage{settings: shown, Pager: ui.NewPager(r, list.NextCursor)}
	if page.Room, err = c.room(r, tenants.CountAPIKeys); err != nil {
		return err
	}
	for _, key := range list.Items {
		page.Keys = append(page.Keys, c.show(key))
	}
	c.pages.Write(w, r, http.StatusOK, "api-keys", ui.View{
		Title: "API Keys", Tabs: tabs(r, apiKeysPath), Data: page,
		Flash: ui.TakeFlash(w, r, map[string]string{"key-revoked": "The API key was revoked. It works nowhere any more."}),
	})
	return nil
}

func (c *console) show(key postgres.ListedAPIKey) shownKey {
	return shownKey{
		ListedAPIKey: key, State: key.State(c.Clock()), May: accessText(key.Access),
		Shown: tenants.APIKeyPrefix + key.Digest.First + "…" + key.Digest.Last,
	}
}

type createdKeyPage struct {
	Key     shownKey
	Old     *shownKey // whose place it takes; nil: of none
	Full    ui.Code   // the key itself: this page is the only place where it is shown
	Try     ui.Variants
	Awaited ui.Awaited
}

// createAPIKey issues a key and shows it in its answer, which browsers do not keep: it is in no address, no cookie and
// no list. A form that is sent again, by a reload, gets no second key.
func (c *console) createAPIKey(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	form := readNewKeyForm(r)
	wanted, fault := form.wanted(c.Clock())
	if err := need(r, tenants.IssuingFor(wanted.Environment)); err != nil {
		return err
	}
	if fault != nil {
		return c.writeNewAPIKey(w, r, http.StatusUnprocessableEntity, form, fault)
	}
	key, secret, err := c.Registrar.IssueAPIKey(r.Context(), c.requestOf(r), wanted)
	switch {
	case isInvalid(err):
		return c.writeNewAPIKey(w, r, http.StatusUnprocessableEntity, form, err)
	case errors.Is(err, tenants.ErrShownOnce):
		return httpapi.NewProblem(http.StatusConflict, "secret_shown_once",
			"This key was created already, and was shown once. If you did not save it, revoke it and create another.")
	case err != nil:
		return problemOf(err, "project", wanted.Project)
	}
	return c.writeCreated(w, r, key, nil, secret)
}

// writeCreated shows a new key, and the one whose place it takes, if any.
func (c *console) writeCreated(w http.ResponseWriter, r *http.Request, key tenants.APIKey, old *shownKey, secret tenants.Secret) error {
	listed, err := c.Views.APIKey(r.Context(), pg.Organization(key.Organization), key.ID)
	if err != nil {
		return err
	}
	c.pages.Write(w, r, http.StatusCreated, "api-key-created", ui.View{
		Title: "Save your new API key now", Tabs: tabs(r, apiKeysPath),
		Data: createdKeyPage{
			Key: c.show(listed), Old: old, Try: c.firstSteps(secret.Reveal()), Awaited: firstEvent(listed),
			Full: ui.Code{ID: "secret", Label: "Your key", Text: secret.Reveal(), Copy: "Copy key", Secret: true},
		},
	})
	return nil
}

// firstSteps are ways to send the first entry with a key.
func (c *console) firstSteps(key string) ui.Variants {
	return ui.Variants{Label: "Try it with", Of: []ui.Variant{
		{Name: "curl", Code: ui.Code{ID: "curl", Label: "A command", Text: curl(c.Origin, key, c.Clock()), Copy: "Copy command"}},
		{Name: "Go", Code: ui.Code{ID: "go", Label: "A program in Go", Text: program(c.Origin, key), Copy: "Copy program"}},
	}}
}

// curl is a command that sends one entry with a key, ready to be pasted.
func curl(origin, key string, now time.Time) string {
	return fmt.Sprintf(`curl '%s/v1/logs' \
  -H 'x-api-key: %s' \
  -H 'Content-Type: application/json' \
  -d '{"logs": [{"timestamp": "%s", "level": "info", "message": "Hello, Weir"}]}'`,
		origin, key, now.UTC().Format(time.RFC3339))
}

// program is a Go program that sends one entry with a key, with the standard library alone.
func program(origin, key string) string {
	return fmt.Sprintf(`package main

import (
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"
)

func main() {
	entry := fmt.Sprintf(`+"`"+`{"logs": [{"timestamp": %%q, "level": "info", "message": "Hello from Go"}]}`+"`"+`,
		time.Now().UTC().Format(time.RFC3339Nano))
	request, err := http.NewRequest(http.MethodPost, "%s/v1/logs", strings.NewReader(entry))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("x-api-key", "%s")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	fmt.Println(response.Status)
}`, origin, key)
}

type revokeKeyPage struct {
	Key    shownKey
	Reason ui.Field
}

func (c *console) showRevokeAPIKey(w http.ResponseWriter, r *http.Request) error {
	return c.writeRevokeAPIKey(w, r, http.StatusOK, "", nil)
}

func (c *console) writeRevokeAPIKey(w http.ResponseWriter, r *http.Request, status int, reason string, fault error) error {
	key, err := c.keyToChange(r)
	if err != nil {
		return err
	}
	c.pages.Write(w, r, status, "api-key-revoke", ui.View{
		Title: "Revoke an API key", Tabs: tabs(r, apiKeysPath),
		Data: revokeKeyPage{
			Key: c.show(key),
			Reason: ui.Field{Name: "reason", Label: "Reason", Value: reason, Fault: faultOf(fault, "reason"), MaxLength: 500,
				Optional: true, Autocomplete: "off", Hint: "For those who look at this later, such as replaced by another, or leaked."},
		},
	})
	return nil
}

// key is the key that the address names.
func (c *console) key(r *http.Request) (postgres.ListedAPIKey, error) {
	id := chi.URLParam(r, "id")
	key, err := c.Registrar.APIKey(r.Context(), callerOf(r), id)
	return key, problemOf(err, "API key", id)
}

// keyToChange is the key that the address names, if the reader may change it.
func (c *console) keyToChange(r *http.Request) (postgres.ListedAPIKey, error) {
	key, err := c.key(r)
	if err != nil {
		return key, err
	}
	return key, need(r, tenants.IssuingFor(key.Environment))
}

func (c *console) revokeAPIKey(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	key, err := c.keyToChange(r)
	if err != nil {
		return err
	}
	reason := r.PostForm.Get("reason")
	_, err = c.Registrar.RevokeAPIKey(r.Context(), c.requestOf(r), key.ID, reason)
	if isInvalid(err) {
		return c.writeRevokeAPIKey(w, r, http.StatusUnprocessableEntity, reason, err)
	}
	if err != nil {
		return problemOf(err, "API key", key.ID)
	}
	ui.SetFlash(w, "key-revoked")
	http.Redirect(w, r, apiKeysPath, http.StatusSeeOther)
	return nil
}
