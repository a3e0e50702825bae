package console

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

type groupPage struct {
	shownCounts
	shownGroup
	decideForms
	Members     []shownGroup // that were merged into it, the most frequent ones
	Activity    []shownActivity
	Older       string // the address of the page with the decisions before those; empty: there are none
	Why         postgres.Explanation
	Occurrences []shownOccurrence
	Similar     []shownSimilar
	Links       []shownLink
	MapsHref    string
	RulesHref   string
	Unordered   string // as of groups.Detail
	Last, First ui.Moment
}

// A sampleOf is a sample of the group of a page.
type sampleOf struct {
	Group *groupPage
	shownOccurrence
}

// With is a sample of the page's group.
func (g *groupPage) With(sample shownOccurrence) sampleOf { return sampleOf{g, sample} }

// shownSimilar is a group that may be about the same
// fault, and the calls in which the two differ.
type shownSimilar struct {
	ID, Href, Title     string
	Percent             int
	OnlyHere, OnlyThere []string
}

func showSimilar(similar []groups.Similar) (shown []shownSimilar) {
	for _, s := range similar {
		shown = append(shown, shownSimilar{s.Group.ID, groupsPath + "/" + s.Group.ID, s.Group.Title, int(100 * s.Similarity), s.OnlyHere, s.OnlyThere})
	}
	return shown
}

func (p *groupPages) showGroup(w http.ResponseWriter, r *http.Request) error {
	return p.writeGroup(w, r, http.StatusOK, "")
}

// maxActivity is how many decisions a page shows, the newest ones or those before a number.
const maxActivity = 50

// olderThan names the parameter with that number.
const olderThan = "before"

// beforeOf is the number of a decision, before which a page shows others.
func beforeOf(r *http.Request, g postgres.Group) int64 {
	before, err := strconv.ParseInt(r.URL.Query().Get(olderThan), 10, 64)
	if err != nil || before < 1 {
		return g.Version + 1
	}
	return before
}

// searchable refuses an id that the database can't even look for.
func searchable(id string) error {
	if strings.ToValidUTF8(id, "") != id || strings.ContainsRune(id, 0) {
		return httpapi.NotFound("error group", id)
	}
	return nil
}

// writeGroup shows a group, and what was wrong with a decision.
func (p *groupPages) writeGroup(w http.ResponseWriter, r *http.Request, status int, fault string) error {
	id := chi.URLParam(r, "group")
	if err := searchable(id); err != nil {
		return err
	}
	reader := identity.FromContext(r.Context())
	found, err := p.service.Groups.Detail(r.Context(), reader, id)
	if err != nil {
		return err
	}
	if found.Group.ID != id {
		http.Redirect(w, r, groupsPath+"/"+found.Group.ID, http.StatusSeeOther) // it was merged into that one
		return nil
	}
	activity, err := p.service.Groups.Activity(r.Context(), reader, id, beforeOf(r, found.Group), maxActivity)
	if err != nil {
		return err
	}
	here := r.Clone(r.Context())
	here.URL.Path = groupsPath + "/" + id // also in the answer to a form, which has another address
	counts, newest, err := p.counts(here, found)
	if err != nil {
		return err
	}
	page := groupPage{
		shownCounts: counts, shownGroup: p.show(r, found.Group), decideForms: p.newDecideForms(r, found.Group, newest), Why: found.Why,
		Occurrences: showOccurrences(found.Group, found.Occurrences, r.URL.Query().Get("sample")), Similar: showSimilar(found.Similar),
		Activity: p.showActivity(r, activity),
		MapsHref: ofProject(mapsPath, found.Group.Project), RulesHref: ofProject(rulesPath, found.Group.Project),
		Links:     p.showLinks(reader.Organization, found.Group.State.Links),
		Unordered: found.Unordered,
		Last:      ui.NewMoment(found.Group.LastSeen, p.clock()), First: ui.NewMoment(found.Group.FirstSeen, p.clock()),
	}
	if n := len(activity); n == maxActivity && activity[n-1].Version > 1 {
		page.Older = ui.With(here, olderThan, strconv.FormatInt(activity[n-1].Version, 10)) + "#activity"
	}
	for _, member := range found.Members {
		page.Members = append(page.Members, p.show(r, member))
	}
	flash := &ui.Flash{Text: fault, Fault: true}
	if fault == "" {
		flash = ui.TakeFlash(w, r, done)
	}
	p.pages.Write(w, r, status, "group", ui.View{Title: page.Title, Of: page.Project, Data: &page, Flash: flash})
	return nil
}

// A shownLink is a link, with what people call its webhook.
type shownLink struct {
	grouping.Link
	Host string // of the webhook; empty: it was deleted
	Off  bool   // nothing is sent to it
}

func (p *groupPages) showLinks(organization string, links []grouping.Link) (shown []shownLink) {
	for _, l := range links {
		to, _ := p.directory.Webhook(organization, l.Webhook)
		shown = append(shown, shownLink{l, to.Host, !to.On})
	}
	return shown
}
