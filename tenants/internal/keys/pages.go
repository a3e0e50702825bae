package keys

import (
	"embed"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

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
	settings.Get(path+"/{id}", p.For(tenants.APIKeysRead, p.showOne))
	settings.Get(path+"/{id}/first-event", p.For(tenants.APIKeysRead, p.awaitFirstEvent))
	settings.Get(path+"/{id}/edit", p.For(tenants.APIKeysWrite, p.showChange))
	settings.Post(path+"/{id}/edit", p.For(tenants.APIKeysWrite, p.change))
	settings.Get(path+"/{id}/revoke", p.Confirmed(tenants.APIKeysWrite, p.showRevoke))
	settings.Post(path+"/{id}/revoke", p.Confirmed(tenants.APIKeysWrite, p.revoke()))
	issuePages(p).mount(settings)
	overviewPages{p.Section(ui.Overview, templates), p.service}.mount(settings)
}

// shownKey is a key in a list.
type shownKey struct {
	Listed
	Shown string // the stored part of the key
	May   string // what it may do, as text
	State tenants.State
	Used  ui.Moment
	Soon  bool // it expires within expiresSoon
}

// expiresSoon is when a key that will expire is marked.
const expiresSoon = 14 * 24 * time.Hour

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
		page.Keys = append(page.Keys, showKey(key, p.Clock()))
	}
	p.Write(w, r, http.StatusOK, "api-keys", ui.View{
		Title: "API Keys", Tabs: pages.Tabs(r, pages.APIKeysPath), Data: page,
		Flash: ui.TakeFlash(w, r, map[string]string{"key-revoked": "The API key was revoked. It no longer works."}),
	})
	return nil
}

func showKey(key Listed, now time.Time) shownKey {
	return shownKey{
		Listed: key, State: key.State(now), May: accessText(key.Access), Used: ui.NewMoment(key.LastUsedAt, now),
		Soon:  !key.ExpiresAt.IsZero() && key.State(now) == tenants.Active && key.ExpiresAt.Before(now.Add(expiresSoon)),
		Shown: tenants.APIKeyPrefix + key.Digest.First + "…" + key.Digest.Last,
	}
}

type revokeKeyPage struct {
	Key    shownKey
	Reason ui.Field
}

func (p Pages) showRevoke(w http.ResponseWriter, r *http.Request) error {
	return p.writeRevoke(w, r, http.StatusOK, "", nil)
}

func (p Pages) writeRevoke(w http.ResponseWriter, r *http.Request, status int, reason string, fault error) error {
	key, err := keyToChange(r, p.service)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "api-key-revoke", ui.View{
		Title: "Revoke an API key", Tabs: pages.Tabs(r, pages.APIKeysPath),
		Data: revokeKeyPage{
			Key: showKey(key, p.Clock()), Reason: pages.ReasonField(reason, fault),
		},
	})
	return nil
}

// keyOf is the key in the address.
func keyOf(r *http.Request, service *Service) (Listed, error) {
	id := chi.URLParam(r, "id")
	key, err := service.Key(r.Context(), pages.CallerOf(r), id)
	return key, pages.ProblemOf(err, "API key", id)
}

// keyToChange is the key in the address, if the reader may change it.
func keyToChange(r *http.Request, service *Service) (Listed, error) {
	key, err := keyOf(r, service)
	if err != nil {
		return key, err
	}
	return key, pages.Need(r, tenants.IssuePermission(key.Environment))
}

// keyToRevoke is the id of the key in the
// address, if the reader may change it.
func (p Pages) keyToRevoke(r *http.Request) (string, error) {
	key, err := keyToChange(r, p.service)
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
	key, err := keyOf(r, p.service)
	if err != nil {
		return err
	}
	found, err := p.service.Users(r.Context(), pages.CallerOf(r), key.ID)
	if err != nil {
		return err
	}
	page := keyPage{Settings: shown, Key: showKey(key, p.Clock()), Creator: creator(key), Awaited: firstEvent(key), May: shown.Role.MayIssueFor(key.Environment)}
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
	key, err := keyOf(r, p.service)
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
	key, err := keyToChange(r, p.service)
	if err != nil {
		return err
	}
	return p.writeChange(w, r, http.StatusOK, settingsOf(key.APIKey), nil)
}

func (p Pages) writeChange(w http.ResponseWriter, r *http.Request, status int, form settingsForm, fault error) error {
	key, err := keyToChange(r, p.service)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "api-key-edit", ui.View{
		Title: "Edit an API key", Tabs: pages.Tabs(r, pages.APIKeysPath),
		Data: changeKeyPage{showKey(key, p.Clock()), form.fields(fault)},
	})
	return nil
}

func (p Pages) change(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	key, err := keyToChange(r, p.service)
	if err != nil {
		return err
	}
	form := readSettings(r)
	wanted, fault := form.wanted()
	if fault != nil {
		return p.writeChange(w, r, http.StatusUnprocessableEntity, form, tenants.Invalid{*fault})
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
