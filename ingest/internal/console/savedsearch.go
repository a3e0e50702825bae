package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/saved"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

const (
	searchesPath = path + "/searches"
	// savedParameter has the id of the saved search that the page began with.
	savedParameter = "saved"
	inMenu         = 30 // saved searches
	inList         = 200
)

// savedPages are the pages of saved searches.
type savedPages struct {
	saved     *saved.Service
	directory *identity.Directory
	pages     *ui.Pages
	clock     func() time.Time
}

func (p *savedPages) mount(r chi.Router) {
	handle := func(method, path string, serve func(http.ResponseWriter, *http.Request) error) {
		r.Method(method, searchesPath+path, p.pages.Handle(serve))
	}
	handle("GET", "", p.list)
	handle("GET", "/new", p.showNew)
	handle("POST", "/new", p.saveNew)
	handle("GET", "/{id}/edit", p.show)
	handle("POST", "/{id}/edit", p.saveChanged)
	handle("POST", "/{id}/delete", p.delete)
}

var savedFlashes = map[string]string{
	"search-saved": "The search is saved.", "search-deleted": "The saved search is gone.", "alert-set": "The alert is set. It is evaluated within a minute.",
	"alert-deleted": "The alert is gone. Nothing is told of it any more.", "alert-muted": "Nothing is told of the alert until then.",
	"alert-unmuted": "The alert is told again.", "alert-tested": "A test is sent to all who are told of this alert.",
}

func done(w http.ResponseWriter, r *http.Request, flash, to string) error {
	ui.SetFlash(w, flash)
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// menu leads to the saved searches, and saves what is shown.
func (p *savedPages) menu(r *http.Request) (*ui.Menu, error) {
	if p.saved == nil {
		return nil, nil //nolint:nilnil // the page does without
	}
	who, query := identity.FromContext(r.Context()), r.URL.Query()
	found, err := p.saved.List(r.Context(), who, postgres.SearchFilter{Project: query.Get("project"), Limit: inMenu})
	if err != nil {
		return nil, ingesthttp.SavedProblem(err, query.Get("project"))
	}
	menu := &ui.Menu{Text: "Saved"}
	for _, one := range found {
		link := ui.Link{Text: one.Name, Href: path + "?" + one.Address().Encode(), Current: one.ID == query.Get(savedParameter)}
		if one.State == ingest.AlertFiring {
			link.Text += " · fires"
		}
		if link.Current {
			menu.Text = one.Name
			if one.Owner != "" || saved.MayShare(who) {
				menu.More = append(menu.More, ui.Link{Text: "Change " + one.Name, Href: searchesPath + "/" + one.ID + "/edit?" + kept(query).Encode()})
			}
		}
		menu.Links = append(menu.Links, link)
	}
	menu.More = append(menu.More, ui.Link{Text: "Save this search", Href: searchesPath + "/new?" + kept(query).Encode()},
		ui.Link{Text: "All saved searches", Href: searchesPath}, ui.Link{Text: "Rules for entries that come", Href: rulesPath})
	return menu, nil
}

// kept is what is saved of the page's address.
func kept(query url.Values) url.Values {
	saved := url.Values{"last": {defaultLast}}
	for _, name := range []string{"q", "project", "level", "environment", "last", "from", "to", "field"} {
		values := slices.DeleteFunc(slices.Clone(query[name]), func(value string) bool { return value == "" })
		if len(values) > 0 {
			saved[name] = values
		}
	}
	if saved.Has("from") || saved.Has("to") {
		saved.Del("last")
	}
	return saved
}

// searchOf reads a search from the page's address.
func (p *savedPages) searchOf(r *http.Request, query url.Values) ingest.SavedSearch {
	query = kept(query)
	s := ingest.SavedSearch{
		Project: query.Get("project"), Query: query.Get("q"), Levels: query["level"], Environment: query.Get("environment"),
		Last: query.Get("last"), Fields: query["field"],
	}
	if s.Last == "" {
		timed := r.Clone(r.Context())
		timed.URL = &url.URL{RawQuery: url.Values{"from": query["from"], "to": query["to"]}.Encode()}
		timed, _ = ui.WithTimes(timed, defaultLast, p.clock())
		s.From, s.To = timed.URL.Query().Get("from"), timed.URL.Query().Get("to")
	}
	return s
}

type searchesPage struct {
	Searches []shownSearch
	Cut      bool // there are more
}

type shownSearch struct {
	postgres.SearchWithAlert
	Project string
	Open    string // its address
	Whole   string
	Alert   string // its address; empty: it has none, and the reader may not set one
	Edit    string // empty: the reader may not
	Tone    string // of the alert's state
}

var tones = map[ingest.AlertState]string{ingest.AlertOK: "good", ingest.AlertFiring: "fault", ingest.AlertUnevaluated: "warn"}

func (p *savedPages) list(w http.ResponseWriter, r *http.Request) error {
	who := identity.FromContext(r.Context())
	found, err := p.saved.List(r.Context(), who, postgres.SearchFilter{Limit: inList + 1})
	if err != nil {
		return ingesthttp.SavedProblem(err, "")
	}
	page := searchesPage{Cut: len(found) > inList}
	for _, one := range found[:min(len(found), inList)] {
		shown := shownSearch{SearchWithAlert: one, Open: path + "?" + one.Address().Encode(), Whole: one.Whole(), Project: "All projects", Tone: tones[one.State]}
		if one.SavedSearch.Project != "" {
			shown.Project = p.directory.Name(one.SavedSearch.Project)
		}
		may := one.Owner != "" || saved.MayShare(who)
		if may {
			shown.Edit = searchesPath + "/" + one.ID + "/edit"
		}
		if one.Owner == "" && (may || one.State != "") {
			shown.Alert = searchesPath + "/" + one.ID + "/alert"
		}
		page.Searches = append(page.Searches, shown)
	}
	p.pages.Write(w, r, http.StatusOK, "searches", ui.View{Title: "Saved searches", Data: page, Flash: ui.TakeFlash(w, r, savedFlashes)})
	return nil
}

type searchPage struct {
	ID      string // empty: a new one
	Kept    [][2]string
	Whole   string
	Time    string
	Project string
	Name    ui.Field
	Shared  ui.Field
	Version int64
	Fault   string
	Open    string
	Alert   bool // it has one, which goes with it
}

// write shows the form of a search. fault is what was wrong with it.
func (p *savedPages) write(w http.ResponseWriter, r *http.Request, status int, s ingest.SavedSearch, shared bool, fault error) {
	page := searchPage{
		ID: s.ID, Whole: s.Whole(), Time: timeOf(&s), Project: "all projects", Version: s.Version, Open: path + "?" + s.Address().Encode(),
		Name: ui.Field{Name: "name", Label: "Name", Value: s.Name, Required: true, MaxLength: ingest.MaxSearchName, Autocomplete: "off"},
	}
	if s.Project != "" {
		page.Project = p.directory.Name(s.Project)
	}
	for name, values := range s.Address() {
		for _, value := range values {
			if name != savedParameter {
				page.Kept = append(page.Kept, [2]string{name, value})
			}
		}
	}
	choices := [][2]string{{"", "Only I"}}
	if saved.MayShare(identity.FromContext(r.Context())) {
		choices = append(choices, [2]string{"everybody", "Everybody who reads logs"})
	}
	chosen := ""
	if shared {
		chosen = "everybody"
	}
	page.Shared = ui.Field{
		Name: "shared", Label: "Who sees it", Choices: ui.NewChoices(chosen, choices...), Hint: "A search that everybody sees can carry an alert.",
	}
	var invalid ingest.Invalid
	switch {
	case errors.Is(fault, postgres.ErrNameTaken):
		page.Name.Fault = "There is a saved search of this name already."
	case errors.As(fault, &invalid) && invalid.Field == "name":
		page.Name.Fault = invalid.Error()
	case errors.Is(fault, saved.ErrPrivate):
		page.Shared.Fault = "It has an alert, so everybody sees it. Delete the alert first."
	case errors.As(fault, &invalid):
		page.Fault = invalid.Error()
	case errors.Is(fault, postgres.ErrSearchChanged):
		page.Fault = "Somebody else has changed this search meanwhile, to what you see here. Nothing of yours was saved."
	}
	title := "Save a search"
	if s.ID != "" {
		title = "Change a saved search"
	}
	p.pages.Write(w, r, status, "search-form", ui.View{Title: title, Data: page})
}

func timeOf(s *ingest.SavedSearch) string {
	switch {
	case s.Last == "any":
		return "any time"
	case s.Last != "":
		return "last " + s.Last
	case s.From == "":
		return "until " + s.To
	case s.To == "":
		return "from " + s.From
	}
	return "from " + s.From + " to " + s.To
}

func (p *savedPages) showNew(w http.ResponseWriter, r *http.Request) error {
	p.write(w, r, http.StatusOK, p.searchOf(r, r.URL.Query()), saved.MayShare(identity.FromContext(r.Context())), nil)
	return nil
}

// submitted reads the form of a search.
func (p *savedPages) submitted(w http.ResponseWriter, r *http.Request) (s ingest.SavedSearch, shared bool, err error) {
	if err := ui.ReadForm(w, r); err != nil {
		return s, false, err
	}
	s = p.searchOf(r, r.PostForm)
	s.ID, s.Name = chi.URLParam(r, "id"), strings.TrimSpace(r.PostForm.Get("name"))
	s.Version, _ = strconv.ParseInt(r.PostForm.Get("version"), 10, 64) // 0 is no version of any
	return s, r.PostForm.Get("shared") != "", nil
}

// inForm reports whether a form can show what is wrong.
func inForm(err error) bool {
	var invalid ingest.Invalid
	return errors.As(err, &invalid) || errors.Is(err, postgres.ErrNameTaken) || errors.Is(err, saved.ErrPrivate)
}

func (p *savedPages) saveNew(w http.ResponseWriter, r *http.Request) error {
	s, shared, err := p.submitted(w, r)
	if err != nil {
		return err
	}
	made, err := p.saved.Create(r.Context(), identity.FromContext(r.Context()), s, shared, "")
	switch {
	case inForm(err):
		p.write(w, r, http.StatusUnprocessableEntity, s, shared, err)
		return nil
	case err != nil:
		return ingesthttp.SavedProblem(err, s.Name)
	}
	return done(w, r, "search-saved", path+"?"+made.Address().Encode())
}

// show shows a saved search to change; with the query of the address in
// place of its own, where that has one.
func (p *savedPages) show(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	who := identity.FromContext(r.Context())
	found, err := p.saved.Find(r.Context(), who, id)
	if err == nil && found.Owner == "" && !saved.MayShare(who) {
		err = saved.ErrMayNot
	}
	if err != nil {
		return ingesthttp.SavedProblem(err, id)
	}
	if len(r.URL.Query()) > 0 {
		found = withQuery(found, p.searchOf(r, r.URL.Query()))
	}
	p.write(w, r, http.StatusOK, found, found.Owner == "", nil)
	return nil
}

func withQuery(s, query ingest.SavedSearch) ingest.SavedSearch {
	query.ID, query.Name, query.Owner, query.Version = s.ID, s.Name, s.Owner, s.Version
	return query
}

func (p *savedPages) saveChanged(w http.ResponseWriter, r *http.Request) error {
	s, shared, err := p.submitted(w, r)
	if err != nil {
		return err
	}
	who := identity.FromContext(r.Context())
	changed, err := p.saved.Update(r.Context(), who, s, shared)
	switch {
	case inForm(err):
		p.write(w, r, http.StatusUnprocessableEntity, s, shared, err)
		return nil
	case errors.Is(err, postgres.ErrSearchChanged):
		now, finding := p.saved.Find(r.Context(), who, s.ID)
		if finding != nil {
			return ingesthttp.SavedProblem(finding, s.ID)
		}
		p.write(w, r, http.StatusConflict, now, now.Owner == "", err)
		return nil
	case err != nil:
		return ingesthttp.SavedProblem(err, s.ID)
	}
	return done(w, r, "search-saved", path+"?"+changed.Address().Encode())
}

func (p *savedPages) delete(w http.ResponseWriter, r *http.Request) error {
	s, _, err := p.submitted(w, r)
	if err != nil {
		return err
	}
	if s.Version == 0 {
		return httpapi.NewProblem(http.StatusBadRequest, httpapi.CodeInvalidRequest, "The form names no version. Go back, reload the page and send it again.")
	}
	if _, err := p.saved.Delete(r.Context(), identity.FromContext(r.Context()), s.ID, s.Version); err != nil {
		return ingesthttp.SavedProblem(err, s.ID)
	}
	return done(w, r, "search-deleted", searchesPath)
}
