package keys

import (
	"embed"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
)

//go:embed templates/*.html
var templates embed.FS

// Pages are the pages of API keys.
type Pages struct {
	pages.Set
	service *Service
}

// NewPages returns the pages of a service.
func NewPages(kit *pages.Kit, service *Service) Pages { return Pages{kit.Of(templates), service} }

// Mount adds the pages to the settings.
func (p Pages) Mount(settings chi.Router) {
	const path = pages.APIKeysPath
	settings.Get(path, p.For(tenants.APIKeysRead, p.list))
	settings.Get(path+"/new", p.Confirmed(tenants.APIKeysWrite, p.showNew))
	settings.Post(path, p.Confirmed(tenants.APIKeysWrite, p.create))
	settings.Get(path+"/{id}", p.For(tenants.APIKeysRead, p.showOne))
	settings.Get(path+"/{id}/first-event", p.For(tenants.APIKeysRead, p.awaitFirstEvent))
	settings.Get(path+"/{id}/rotate", p.Confirmed(tenants.APIKeysWrite, p.showRotate))
	settings.Post(path+"/{id}/rotate", p.Confirmed(tenants.APIKeysWrite, p.rotate))
	settings.Get(path+"/{id}/edit", p.For(tenants.APIKeysWrite, p.showChange))
	settings.Post(path+"/{id}/edit", p.For(tenants.APIKeysWrite, p.change))
	settings.Get(path+"/{id}/revoke", p.Confirmed(tenants.APIKeysWrite, p.showRevoke))
	settings.Post(path+"/{id}/revoke", p.Confirmed(tenants.APIKeysWrite, p.revoke()))
}

// shownKey is a key in a list.
type shownKey struct {
	Listed
	Shown string // the stored part of the key
	May   string // what it may do, as text
	State tenants.State
}

type apiKeysPage struct {
	pages.Settings
	Keys     []shownKey
	Pager    ui.Pager
	Capacity pages.ShownCapacity
}

func (p Pages) list(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	find := func(before query.Position, limit int) ([]Listed, error) {
		return p.service.store.Newest(r.Context(), pg.Organization(pages.CallerOf(r).Organization), before, limit)
	}
	list, pager, err := pages.ListOf(r, find, placeOf)
	if err != nil {
		return err
	}
	page := apiKeysPage{Settings: shown, Pager: pager}
	if page.Capacity, err = pages.CapacityOf(r, p.service.Capacity); err != nil {
		return err
	}
	for _, key := range list {
		page.Keys = append(page.Keys, p.show(key))
	}
	p.Write(w, r, http.StatusOK, "api-keys", ui.View{
		Title: "API Keys", Tabs: pages.Tabs(r, pages.APIKeysPath), Data: page,
		Flash: ui.TakeFlash(w, r, map[string]string{"key-revoked": "The API key was revoked. It works nowhere any more."}),
	})
	return nil
}

func (p Pages) show(key Listed) shownKey {
	return shownKey{
		Listed: key, State: key.State(p.Clock()), May: accessText(key.Access),
		Shown: tenants.APIKeyPrefix + key.Digest.First + "…" + key.Digest.Last,
	}
}

type createdKeyPage struct {
	Key     shownKey
	Old     *shownKey // the replaced key; nil: none
	Full    ui.Code   // the key itself, shown only on this page
	Try     ui.Variants
	Awaited ui.Awaited
}

// create issues a key and shows it in the response, which
// browsers do not store. A form sent again gets no second key.
func (p Pages) create(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	form := readNewKeyForm(r)
	wanted, fault := form.wanted(p.Clock())
	if err := pages.Need(r, tenants.IssuePermission(wanted.Environment)); err != nil {
		return err
	}
	if fault != nil {
		return p.writeNew(w, r, http.StatusUnprocessableEntity, form, fault)
	}
	key, secret, err := p.service.Issue(r.Context(), p.RequestOf(r), wanted)
	switch {
	case pages.IsInvalid(err):
		return p.writeNew(w, r, http.StatusUnprocessableEntity, form, err)
	case errors.Is(err, tenants.ErrShownOnce):
		return httpapi.NewProblem(http.StatusConflict, "secret_shown_once",
			"This key was created already, and was shown once. If you did not save it, revoke it and create another.")
	case err != nil:
		return pages.ProblemOf(err, "project", wanted.Project)
	}
	return p.writeCreated(w, r, key, nil, secret)
}

// writeCreated shows a new key, and the replaced one if any.
func (p Pages) writeCreated(w http.ResponseWriter, r *http.Request, key tenants.APIKey, old *shownKey, secret tenants.Secret) error {
	listed, err := p.service.store.Key(r.Context(), pg.Organization(key.Organization), key.ID)
	if err != nil {
		return err
	}
	p.Write(w, r, http.StatusCreated, "api-key-created", ui.View{
		Title: "Save your new API key now", Tabs: pages.Tabs(r, pages.APIKeysPath),
		Data: createdKeyPage{
			Key: p.show(listed), Old: old, Try: p.firstSteps(secret.Reveal()), Awaited: firstEvent(listed),
			Full: ui.Code{ID: "secret", Label: "Your key", Text: secret.Reveal(), Copy: "Copy key", Secret: true},
		},
	})
	return nil
}

// firstSteps are examples of sending a first entry with a key.
func (p Pages) firstSteps(key string) ui.Variants {
	return ui.Variants{Label: "Try it with", Of: []ui.Variant{
		{Name: "curl", Code: ui.Code{ID: "curl", Label: "A command", Text: curl(p.Origin, key, p.Clock()), Copy: "Copy command"}},
		{Name: "Go", Code: ui.Code{ID: "go", Label: "A program in Go", Text: program(p.Origin, key), Copy: "Copy program"}},
	}}
}

// curl is a command that sends one entry with a key.
func curl(origin, key string, now time.Time) string {
	return fmt.Sprintf(`curl '%s/v1/logs' \
  -H 'x-api-key: %s' \
  -H 'Content-Type: application/json' \
  -d '{"logs": [{"timestamp": "%s", "level": "info", "message": "Hello, Weir"}]}'`,
		origin, key, now.UTC().Format(time.RFC3339))
}

// program is a Go program that sends one entry
// with a key, with the standard library alone.
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

func (p Pages) showRevoke(w http.ResponseWriter, r *http.Request) error {
	return p.writeRevoke(w, r, http.StatusOK, "", nil)
}

func (p Pages) writeRevoke(w http.ResponseWriter, r *http.Request, status int, reason string, fault error) error {
	key, err := p.keyToChange(r)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "api-key-revoke", ui.View{
		Title: "Revoke an API key", Tabs: pages.Tabs(r, pages.APIKeysPath),
		Data: revokeKeyPage{
			Key: p.show(key), Reason: pages.ReasonField(reason, fault),
		},
	})
	return nil
}

// key is the key in the address.
func (p Pages) key(r *http.Request) (Listed, error) {
	id := chi.URLParam(r, "id")
	key, err := p.service.Key(r.Context(), pages.CallerOf(r), id)
	return key, pages.ProblemOf(err, "API key", id)
}

// keyToChange is the key in the address, if the reader may change it.
func (p Pages) keyToChange(r *http.Request) (Listed, error) {
	key, err := p.key(r)
	if err != nil {
		return key, err
	}
	return key, pages.Need(r, tenants.IssuePermission(key.Environment))
}

// keyToRevoke is the id of the key in the
// address, if the reader may change it.
func (p Pages) keyToRevoke(r *http.Request) (string, error) {
	key, err := p.keyToChange(r)
	return key.ID, err
}

func (p Pages) revoke() pages.Handler {
	return pages.TextForm[tenants.APIKey]{
		What: "API key", Field: "reason", ID: p.keyToRevoke, Change: p.service.Revoke, Again: p.writeRevoke,
		Flash: "key-revoked", Back: pages.APIKeysPath,
	}.Submit(p.Kit)
}

// keyPage is one key: its state, its use and its problems.
type keyPage struct {
	pages.Settings
	Key     shownKey
	Creator string // empty: unknown
	Users   []shownUser
	Awaited ui.Awaited
	May     bool // the reader may change it
}

type shownUser struct {
	tenants.KeyUser
	Since bool // since the rotation
}

func (p Pages) showOne(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	key, err := p.key(r)
	if err != nil {
		return err
	}
	found, err := p.service.Users(r.Context(), pages.CallerOf(r), key.ID)
	if err != nil {
		return err
	}
	page := keyPage{Settings: shown, Key: p.show(key), Creator: creator(key), Awaited: firstEvent(key), May: shown.Role.MayIssueFor(key.Environment)}
	for _, user := range found {
		page.Users = append(page.Users, shownUser{user, !key.RotatedAt.IsZero() && user.LastUsedAt.After(key.RotatedAt)})
	}
	p.Write(w, r, http.StatusOK, "api-key", ui.View{
		Title: "API key " + key.Name, Tabs: pages.Tabs(r, pages.APIKeysPath), Data: page,
		Flash: ui.TakeFlash(w, r, map[string]string{"key-changed": "The API key was changed."}),
	})
	return nil
}

// creator is the name of a key's creator.
func creator(key Listed) string {
	switch {
	case key.CreatedBy == "command":
		return "somebody at the server"
	case strings.HasPrefix(key.CreatedBy, "tok_"):
		return "the service token " + key.CreatedBy
	}
	return key.CreatedBy
}

// awaitFirstEvent responds to the script that waits for a key's first log.
func (p Pages) awaitFirstEvent(w http.ResponseWriter, r *http.Request) error {
	key, err := p.key(r)
	if err != nil {
		return err
	}
	ui.WriteAwaited(w, firstEvent(key))
	return nil
}

// firstEvent is whether a key's first log has arrived.
func firstEvent(key Listed) ui.Awaited {
	if !key.FirstAcceptedAt.IsZero() {
		return ui.Awaited{Done: true, Text: "The first event came on " + ui.Instant(key.FirstAcceptedAt) + "."}
	}
	return ui.Awaited{Text: "Waiting for the first event…", Poll: pages.APIKeysPath + "/" + key.ID + "/first-event"}
}

type changeKeyPage struct {
	Key    shownKey
	Fields []ui.Field
}

func (p Pages) showChange(w http.ResponseWriter, r *http.Request) error {
	key, err := p.keyToChange(r)
	if err != nil {
		return err
	}
	rate := ""
	if key.RatePerMinute > 0 {
		rate = strconv.Itoa(key.RatePerMinute)
	}
	return p.writeChange(w, r, http.StatusOK, keyForm{key.Name, rate, string(key.Access)}, nil)
}

// keyForm is the filled-in form of a changed key.
type keyForm struct{ name, rate, access string }

func (p Pages) writeChange(w http.ResponseWriter, r *http.Request, status int, form keyForm, fault error) error {
	key, err := p.keyToChange(r)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "api-key-edit", ui.View{
		Title: "Edit an API key", Tabs: pages.Tabs(r, pages.APIKeysPath),
		Data: changeKeyPage{p.show(key), []ui.Field{nameOfKey(form.name, fault), accessOfKey(form.access, fault), rateOfKey(form.rate, fault)}},
	})
	return nil
}

func (p Pages) change(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	key, err := p.keyToChange(r)
	if err != nil {
		return err
	}
	form := keyForm{r.PostForm.Get("name"), r.PostForm.Get("rate_per_minute"), r.PostForm.Get("access")}
	rate, fault := readRate(form.rate)
	if fault != nil {
		return p.writeChange(w, r, http.StatusUnprocessableEntity, form, tenants.Invalid{*fault})
	}
	wanted := Change{Name: &form.name, RatePerMinute: &rate}
	if access := tenants.Access(form.access); access != "" { // older forms lack this field
		wanted.Access = &access
	}
	_, err = p.service.Change(r.Context(), p.RequestOf(r), key.ID, wanted)
	if pages.IsInvalid(err) {
		return p.writeChange(w, r, http.StatusUnprocessableEntity, form, err)
	}
	if err != nil {
		return keyProblem(err, key.ID)
	}
	return pages.Done(w, r, "key-changed", pages.APIKeysPath+"/"+key.ID)
}
