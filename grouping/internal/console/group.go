package console

import (
	"cmp"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	groupinghttp "github.com/weirlog/weir/grouping/internal/http"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

//go:embed templates/*.html
var templates embed.FS

// groupsPath is the list of groups; groups are below it.
const groupsPath = "/console/errors"

// pageSize is how many groups a list shows at once.
const pageSize = 50

// Config is what the pages need.
type Config struct {
	Service   *groups.Service
	Directory *identity.Directory
	Guard     *identity.Guard
	Clock     func() time.Time
}

type console struct {
	Config
	pages *ui.Pages
}

// Mount adds the pages to router.
func Mount(router chi.Router, config Config) {
	c := &console{Config: config, pages: ui.NewPages(ui.Errors, templates).Following(config.Directory)}
	c.pages.Mount(router, config.Guard, func(r chi.Router) {
		r.Get(groupsPath, c.pages.Handle(c.showGroups))
		r.Post(groupsPath+"/decide", c.pages.Handle(c.decideAll))
		r.Get(mapsPath, c.pages.Handle(c.showMaps))
		r.Get(rulesPath, c.pages.Handle(c.showRules))
		r.Post(rulesPath, c.pages.Handle(c.changeRules))
		r.Get(groupsPath+"/overview", c.pages.Handle(c.showOverview))
		r.Get(groupsPath+"/{group}", c.pages.Handle(c.showGroup))
		r.Post(groupsPath+"/{group}/decide", c.pages.Handle(c.decide))
		c.mountAlerts(r)
		c.mountSettings(r)
	})
}

// shownGroup is a group as the pages show it.
type shownGroup struct {
	ID           string
	Href         string
	Title        string
	Type         string
	Culprit      string
	Project      string
	Status       string
	Count        int64
	FirstSeen    time.Time
	LastSeen     time.Time
	Levels       []ui.Level
	Environments []string
	More         int64 // environments that are not shown
	Regressed    bool
	How          string // it is resolved or ignored
	FirstRelease string
	LastRelease  string
	Assignee     string
	Merged       int64 // groups that were merged into it
	Spiking      bool  // it began to within a day
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

func (c *console) show(r *http.Request, g postgres.Group) shownGroup {
	return shownGroup{
		ID: g.ID, Href: groupsPath + "/" + g.ID, Title: g.Title, Type: g.Type, Culprit: g.Culprit, Project: c.Directory.Name(g.Project),
		Status: string(g.Status), Count: g.Count, FirstSeen: g.FirstSeen, LastSeen: g.LastSeen,
		Levels: ui.Levels(g.Severities.Names()), Environments: g.Environments,
		Regressed: g.State.Regressed, How: resolvedIn(g.State.Resolution) + ignoredUntil(g.State.Until),
		FirstRelease: g.FirstRelease, LastRelease: g.LastRelease, Assignee: who(r, g.State.Assignee.ID, g.State.Assignee.Name),
		Merged: int64(g.Members), Spiking: c.Clock().Sub(g.State.Spike.Hour) < 24*time.Hour,
	}
}

type groupsPage struct {
	decider
	Views      []ui.Link
	Sorts      []sortLink // in the order of the columns
	Order      string     // of the list, in words
	DecidePath string     // with the search
	Filters    ui.Filters
	Searched   bool // false: the search was not understood
	Incomplete bool // the search timed out before the page was full
	Groups     []listedGroup
	Pager      ui.Pager
}

// showGroups accepts the query of the API's list, times as browsers send
// them, and a project, which the API has in its path.
func (c *console) showGroups(w http.ResponseWriter, r *http.Request) error {
	shown, asked := ui.WithTimes(r, ui.AnyTime, c.Clock())
	query, asked, err := c.queryOf(asked)
	words := ui.Field{Label: "Title, type or culprit", Hint: "Title, type or culprit", MaxLength: 200}
	page := groupsPage{Filters: ui.NewFilters(r, c.Directory.Projects(identity.FromContext(r.Context()).Organization), words, ui.AnyTime, err)}
	page.decider, page.Views, page.DecidePath = c.decider(r, postgres.Group{}, ""), viewsOf(r), groupsPath+"/decide?"+r.URL.RawQuery
	page.Filters.Keep(r, "status")
	page.Filters.Keep(r, "new_since")
	page.Filters.Keep(r, "sort")
	page.Sorts, page.Order = sortsOf(r)
	if page.Filters.Faulty() {
		c.write(w, r, http.StatusUnprocessableEntity, page)
		return nil
	}
	if err != nil {
		return err
	}
	query.Limit = pageSize
	if query.Project != "" && !c.Directory.Owns(identity.FromContext(r.Context()).Organization, query.Project) {
		return httpapi.NotFound("project", query.Project)
	}
	found, err := c.Service.Groups(r.Context(), identity.FromContext(r.Context()).Organization, query)
	if err != nil {
		return err
	}
	page.Searched, page.Incomplete = true, found.Incomplete
	if found.Next != nil {
		next := httpapi.EncodeCursor(asked, found.Next)
		page.Pager = ui.NewPager(shown, &next)
	} else {
		page.Pager = ui.NewPager(shown, nil)
	}
	for _, group := range found.Groups {
		page.Groups = append(page.Groups, listedGroup{c.show(r, group).clipped(), c.recently(group, found.Recent[group.ID])})
	}
	c.write(w, r, http.StatusOK, page)
	return nil
}

// allStates is the status of a list of all of them. Without
// one it is that of what is unresolved.
const allStates = "all"

// queryOf reads the query of a list, and returns the request
// without what only the page knows.
func (c *console) queryOf(r *http.Request) (query postgres.GroupQuery, asked *http.Request, err error) {
	asked = ui.Without(r, "status")
	if query, err = groupinghttp.ParseQuery(asked); err != nil {
		return query, asked, err
	}
	word := cmp.Or(r.URL.Query().Get("status"), string(grouping.Unresolved))
	if status, known := grouping.ParseStatus(word); known {
		query.Status = status
	} else if word != allStates {
		return query, asked, httpapi.NotFound("list of errors", word)
	}
	query.Project = r.URL.Query().Get("project")
	return query, asked, nil
}

// viewsOf links the lists by status.
func viewsOf(r *http.Request) (views []ui.Link) {
	chosen, isNew := r.URL.Query().Get("status"), r.URL.Query().Get("new_since") != ""
	for _, of := range [][2]string{
		{"", "Unresolved"}, {string(grouping.Resolved), "Resolved"}, {string(grouping.Ignored), "Ignored"},
		{string(grouping.Archived), "Archived"}, {allStates, "All"},
	} {
		views = append(views, ui.Link{Text: of[1], Href: ui.With(r, "status", of[0], "new_since", ""), Current: chosen == of[0] && !isNew})
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

func (c *console) write(w http.ResponseWriter, r *http.Request, status int, page groupsPage) {
	c.pages.Write(w, r, status, "groups", ui.View{Title: "Errors", Wide: true, Data: page, Flash: ui.TakeFlash(w, r, done)})
}

type groupPage struct {
	shownNumbers
	shownGroup
	decider
	Members     []shownGroup // that were merged into it, the most frequent ones
	Activity    []shownActivity
	Why         postgres.Explanation
	Occurrences []shownOccurrence
	Similar     []shownSimilar
	Links       []grouping.Link
	MapsHref    string
	RulesHref   string
}

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

func (c *console) showGroup(w http.ResponseWriter, r *http.Request) error {
	return c.writeGroup(w, r, http.StatusOK, "")
}

// maxActivity is how many decisions a page shows.
const maxActivity = 50

// writeGroup shows a group, and what was wrong with a decision.
func (c *console) writeGroup(w http.ResponseWriter, r *http.Request, status int, fault string) error {
	id := chi.URLParam(r, "group")
	if strings.ToValidUTF8(id, "") != id || strings.ContainsRune(id, 0) {
		return httpapi.NotFound("error group", id) // the database can't even look for it
	}
	reader := identity.FromContext(r.Context())
	found, err := c.Service.Group(r.Context(), reader, id)
	if errors.Is(err, postgres.ErrNoGroup) {
		return httpapi.NotFound("error group", id)
	}
	if err != nil {
		return err
	}
	if found.Group.ID != id {
		http.Redirect(w, r, groupsPath+"/"+found.Group.ID, http.StatusSeeOther) // it was merged into that one
		return nil
	}
	activity, known, err := c.Service.Decided(r.Context(), reader, found.Group, maxActivity)
	if err != nil {
		return err
	}
	numbers, err := c.numbers(r, found.Group, found.Occurrences)
	if err != nil {
		return err
	}
	page := groupPage{
		shownNumbers: numbers, shownGroup: c.show(r, found.Group), decider: c.decider(r, found.Group, known.Newest(found.Group.LastRelease)), Why: found.Why,
		Occurrences: showOccurrences(found.Group.Project, found.Occurrences), Similar: showSimilar(found.Similar), Activity: showActivity(r, activity),
		MapsHref: mapsOf(found.Group.Project), RulesHref: rulesOf(found.Group.Project), Links: found.Group.State.Links,
	}
	for _, member := range found.Members {
		page.Members = append(page.Members, c.show(r, member))
	}
	flash := &ui.Flash{Text: fault, Fault: true}
	if fault == "" {
		flash = ui.TakeFlash(w, r, done)
	}
	c.pages.Write(w, r, status, "group", ui.View{Title: page.Title, Of: page.Project, Data: page, Flash: flash})
	return nil
}

// Bounds of a shown sample.
const (
	maxFrames     = 100 // per exception
	maxExceptions = 10
)

// shownOccurrence is a sample as a page shows it.
type shownOccurrence struct {
	Entry       string
	At          time.Time
	Levels      []ui.Level
	Environment string
	LogsUpTo    string // the address of the logs before it, the newest first
	LogsFrom    string // of those after it, the oldest first
	Exceptions  []shownException
	More        int64 // exceptions that are not shown
}

// shownException is one error of a chain.
type shownException struct {
	Type    string
	Message string
	Frames  []shownFrame
	More    int64    // frames that are not shown
	Printed []string // why frames are shown as they were printed
}

// shownFrame is one call.
type shownFrame struct {
	What  string // what was called
	Where string // file, line and column, as far as known
	InApp bool
	Why   string // it is a library's

	Printed, PrintedAt string // what was printed of a call that is shown as it was written
}

var libraryReasons = map[trace.Reason]string{
	trace.ByPath:   "library: installed there",
	trace.ByName:   "known library or runtime",
	trace.ByErrors: "library: few of the project's errors go through this package",
}

func showOccurrences(project string, occurrences []postgres.Occurrence) (shown []shownOccurrence) {
	for _, o := range occurrences {
		s := shownOccurrence{Entry: o.Entry, At: o.At, Levels: ui.Levels(o.Severity.Names()), Environment: o.Environment,
			LogsUpTo: logsUpTo(project, o), LogsFrom: logsFrom(project, o)}
		for _, x := range o.Exceptions[:min(len(o.Exceptions), maxExceptions)] {
			s.Exceptions = append(s.Exceptions, showException(x, o.Build))
		}
		s.More = int64(len(o.Exceptions) - len(s.Exceptions))
		for _, x := range o.Exceptions {
			s.More += int64(x.MoreExceptions)
		}
		shown = append(shown, s)
	}
	return shown
}

// logsFrom is the address of what the same project and environment
// logged with an occurrence and after it, and logsUpTo of that before.
func logsFrom(project string, o postgres.Occurrence) string {
	return logsOf(project, o, url.Values{"from": {queryTime(o.At)}, "order": {"asc"}})
}

func logsUpTo(project string, o postgres.Occurrence) string {
	return logsOf(project, o, url.Values{"to": {queryTime(o.At.Add(time.Microsecond))}}) // exclusive
}

func logsOf(project string, o postgres.Occurrence, query url.Values) string {
	query.Set("project", project)
	if o.Environment != "" {
		query.Set("environment", o.Environment)
	}
	return "/console/logs?" + query.Encode()
}

// queryTime is at in RFC 3339, or "" where that has no year for it.
func queryTime(at time.Time) string {
	if year := at.UTC().Year(); year < 0 || year > 9999 {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

func showException(x postgres.Exception, build postgres.Build) shownException {
	shown := shownException{Type: x.Type, Message: x.Message, Printed: whyPrinted(x.Frames, build)}
	for _, f := range x.Frames[:min(len(x.Frames), maxFrames)] {
		frame := shownFrame{What: called(f), Where: where(f), InApp: f.InApp, Why: libraryReasons[f.Library]}
		if f.Rule != "" {
			frame.Why = "rule: " + f.Rule
		}
		if p := f.Printed; p != nil && p.Unmapped == "" {
			printed := postgres.Frame{Function: p.Function, File: p.File, Line: p.Line, Column: p.Column}
			frame.Printed, frame.PrintedAt = called(printed), where(printed)
		}
		shown.Frames = append(shown.Frames, frame)
	}
	shown.More = int64(len(x.Frames) - len(shown.Frames) + x.MoreFrames)
	return shown
}

func called(f postgres.Frame) string {
	if f.Module != "" && f.Function != "" {
		return f.Module + "." + f.Function
	}
	return cmp.Or(f.Function, f.Module, "(unknown)")
}

func where(f postgres.Frame) string {
	place := f.File
	for _, number := range []int{f.Line, f.Column} {
		if number == 0 {
			break
		}
		place += ":" + strconv.Itoa(number)
	}
	return place
}
