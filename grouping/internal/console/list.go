package console

import (
	"cmp"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/internal/query"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// groupPages are the list of groups and the page of one.
type groupPages struct {
	*console
	service *groups.Service
}

func (p *groupPages) mount(r chi.Router) {
	r.Get(groupsPath, p.shows(p.showGroups))
	r.Post(groupsPath+"/decide", p.changes(p.decideAll))
	r.Get(groupsPath+"/overview", p.shows(p.showOverview))
	r.Get(groupsPath+"/{group}", p.shows(p.showGroup))
	r.Post(groupsPath+"/{group}/decide", p.changes(p.decide))
	r.Get(groupsPath+"/{group}/occurrences", p.shows(p.showOccurrences))
	r.Post(groupsPath+"/{group}/occurrences", p.shows(p.showSelected))
	r.Post(groupsPath+"/{group}/select", p.shows(p.selectEntries))
}

// pageSize is how many items a list shows at once.
const pageSize = 50

// shownGroup is a group as the pages show it.
type shownGroup struct {
	postgres.Group
	Href     string
	Project  string // its name
	Levels   []ui.Level
	More     int64  // environments that are not shown
	How      string // it is resolved or ignored
	Assignee string
	Merged   int64 // groups that were merged into it
	Spiking  bool  // it began to within a day
}

// maxListed is how many environments a row of the list names.
const maxListed = 10

// clipped shortens the group to a row of
// the list. The group's page has all of it.
func (g shownGroup) clipped() shownGroup {
	if n := len(g.Environments); n > maxListed {
		g.Environments, g.More = g.Environments[:maxListed], int64(n-maxListed)
	}
	return g
}

func (p *groupPages) show(r *http.Request, g postgres.Group) shownGroup {
	return shownGroup{
		Group: g, Href: groupsPath + "/" + g.ID, Project: p.directory.Name(g.Project), Levels: ui.Levels(g.Severities.Names()),
		How: resolvedIn(g.State.Resolution) + ignoredUntil(g.State.Until), Assignee: p.who(r, g.State.Assignee.ID, g.State.Assignee.Name),
		Merged: int64(g.Members), Spiking: p.clock().Sub(g.State.Spike.Hour) < 24*time.Hour,
	}
}

type groupsPage struct {
	decideForms
	Views      []ui.Link
	Sorts      []sortLink // in the order of the columns
	Order      string     // of the list, in words
	DecidePath string     // with the search
	Filters    ui.Filters
	Searched   bool // false: the search was not understood
	Incomplete bool // the search timed out before the page was full
	OneProject bool // all groups are of one, so that no row names it
	Groups     []listedGroup
	Pager      ui.Pager
}

// showGroups accepts the query of the API's list, times as browsers send
// them, and a project, which the API has in its path.
func (p *groupPages) showGroups(w http.ResponseWriter, r *http.Request) error {
	shown, asked := ui.WithTimes(r, ui.AnyTime, p.clock())
	search, asked, err := p.queryOf(asked)
	words := ui.Field{Label: "Title, type or culprit", Hint: "Words, type:KeyError release:1.2 assigned:me", MaxLength: 200, Offers: query.Offers()}
	projects := p.directory.Projects(identity.FromContext(r.Context()).Organization)
	page := groupsPage{Filters: ui.NewFilters(r, projects, words, ui.AnyTime, err), OneProject: len(projects) == 1 || search.Project != ""}
	page.decideForms, page.Views, page.DecidePath = p.newDecideForms(r, postgres.Group{}, ""), viewsOf(r, search.Status), groupsPath+"/decide?"+r.URL.RawQuery
	page.Filters.Keep(r, "status")
	page.Filters.Keep(r, "new_since")
	page.Filters.Keep(r, "sort")
	page.Sorts, page.Order = sortsOf(r)
	if page.Filters.Faulty() {
		p.write(w, r, http.StatusUnprocessableEntity, page)
		return nil
	}
	if err != nil {
		return err
	}
	search.Limit = pageSize
	if search.Project != "" && !p.directory.Owns(identity.FromContext(r.Context()).Organization, search.Project) {
		return httpapi.NotFound("project", search.Project)
	}
	found, err := p.service.Groups.List(r.Context(), identity.FromContext(r.Context()).Organization, search)
	if err != nil {
		return err
	}
	page.Searched, page.Incomplete = true, found.Incomplete
	var next *string
	if found.Next != nil {
		cursor := httpapi.EncodeCursor(asked, found.Next)
		next = &cursor
	}
	page.Pager = ui.NewPager(shown, next)
	for _, group := range found.Groups {
		page.Groups = append(page.Groups, listedGroup{p.show(r, group).clipped(), p.recently(group, found.Recent[group.ID])})
	}
	p.write(w, r, http.StatusOK, page)
	return nil
}

// allStates is the status of a list of all of them. Without
// one it is that of what is unresolved.
const allStates = "all"

// queryOf reads the query of a list, and returns the request
// without what only the page knows.
func (p *groupPages) queryOf(r *http.Request) (search postgres.GroupQuery, asked *http.Request, err error) {
	asked = ui.Without(r, "status")
	search, err = query.Parse(asked)
	word := cmp.Or(string(search.Status), r.URL.Query().Get("status"), string(grouping.Unresolved)) // is: of the search line comes first
	if status, known := grouping.ParseStatus(word); known {
		search.Status = status
	} else if word != allStates && err == nil {
		err = httpapi.NotFound("list of errors", word)
	}
	search.Project = r.URL.Query().Get("project")
	return search, asked, err
}

// viewsOf links the lists by status, in place of that of the search line.
// shown is the one that is shown; empty: all.
func viewsOf(r *http.Request, shown grouping.Status) (views []ui.Link) {
	isNew, line := r.URL.Query().Get("new_since") != "", query.Without(r.URL.Query().Get("q"), "is")
	for _, of := range []struct {
		word, text string
		status     grouping.Status
	}{
		{"", "Unresolved", grouping.Unresolved}, {string(grouping.Resolved), "Resolved", grouping.Resolved}, {string(grouping.Ignored), "Ignored", grouping.Ignored},
		{string(grouping.Archived), "Archived", grouping.Archived}, {allStates, "All", ""},
	} {
		views = append(views, ui.Link{Text: of.text, Href: ui.With(r, "status", of.word, "new_since", "", "q", line), Current: of.status == shown && !isNew})
	}
	return append(views, ui.Link{Text: "New since the last deploy", Href: ui.With(r, "status", "", "new_since", "deploy"), Current: isNew})
}

// A sortLink is the head of a column by which a list can be sorted.
type sortLink struct {
	ui.Link
	Number bool // the column has numbers
}

// sortsOf links the orders of a list, and says which it has.
func sortsOf(r *http.Request) (links []sortLink, order string) {
	chosen := r.URL.Query().Get("sort")
	for _, of := range []struct {
		by, text, order string
		number          bool
	}{
		{string(postgres.ByCount), "Count", "the most frequent one comes first", true},
		{string(postgres.ByUsers), "Users", "the one with the most users comes first, of the 2,000 seen last", true},
		{"", "Last seen", "the one seen last comes first", false},
		{string(postgres.ByFirstSeen), "Since", "the newest one comes first", false},
	} {
		links = append(links, sortLink{ui.Link{Text: of.text, Href: ui.With(r, "sort", of.by, "cursor", ""), Current: of.by == chosen}, of.number})
		if of.by == chosen {
			order = of.order
		}
	}
	return links, order
}

func (p *groupPages) write(w http.ResponseWriter, r *http.Request, status int, page groupsPage) {
	p.pages.Write(w, r, status, "groups", ui.View{Title: "Errors", Wide: true, Data: page, Flash: ui.TakeFlash(w, r, done)})
}
