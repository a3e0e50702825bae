package keys

import (
	"net/http"
	"strings"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

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
