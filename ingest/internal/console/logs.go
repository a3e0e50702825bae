package console

import (
	"embed"
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/rejected"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/ingest/internal/saved"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

//go:embed templates/*.html
var templates embed.FS

const (
	pageSize = 50
	// Entries are read whole, so a page of large ones has fewer.
	maxPage = 2 << 20 // bytes
	// defaultLast is the time of a page that names none.
	defaultLast = "1h"
)

// What the chart and the fields may read, so that a page stays fast.
const (
	chartBytes = 64 << 20
	fieldBytes = 32 << 20
)

// Config holds what the page needs.
type Config struct {
	Service   *searches.Service
	Saved     *saved.Service
	Rejected  *rejected.Service
	Rules     *rules.Service
	Tails     *ingesthttp.Tails
	Directory *identity.Directory
	Guard     *identity.Guard
	Clock     func() time.Time
}

type console struct {
	Config
	pages    *ui.Pages
	searches *savedPages
}

// Mount adds the page to router.
func Mount(router chi.Router, config Config) {
	pages := ui.NewPages(ui.Logs, templates).Following(config.Directory)
	searches := &savedPages{saved: config.Saved, directory: config.Directory, pages: pages, clock: config.Clock}
	alerts := &alertPages{saved: config.Saved, pages: pages, clock: config.Clock}
	c := &console{Config: config, pages: pages, searches: searches}
	pages.Mount(router, config.Guard, func(r chi.Router) {
		r.Get("/console/logs", c.pages.Handle(c.showLogs))
		r.Get("/console/logs/overview", c.pages.Handle(c.showOverview))
		r.Get("/console/logs/entry", c.pages.Handle(c.showEntry))
		r.Get("/console/logs/entries", httpapi.Handle((&ingesthttp.Logs{Service: config.Service, Clock: config.Clock}).List))
		r.Get("/console/logs/tail", httpapi.Handle(c.tail))
		r.Get("/console/logs/ndjson", c.pages.Handle(c.download("logs.ndjson", httpapi.TypeLines)))
		r.Get("/console/logs/csv", c.pages.Handle(c.download("logs.csv", httpapi.TypeCSV)))
		r.Get(rejectedPath, c.pages.Handle(c.showRejected))
		searches.mount(r)
		alerts.mount(r)
		c.rulesPage().Mount(r)
	})
}

type logsPage struct {
	Filters  ui.Filters
	Kept     [][2]string // the query, for the form that adds a term
	Searched bool        // false: the search was not understood
	Oldest   bool        // the oldest first
	Future   string      // the address of the same with entries of the future; empty: they are not hidden
	Rejected string      // the address of what was rejected
	Newest   string      // where nothing was found, the address of the newest entry's time
	Summary  summary
	Views    []ui.Link
	Chart    *ui.Histogram
	ByLevel  string // where the chart is by a field, the address with it by level
	Patterns *patternList
	Facets   []facet
	Columns  []string
	Entries  []shownEntry
	Live     ui.Live
	Pager    ui.Pager
}

// A summary is what was found and what that took.
type summary struct {
	Counted  bool // whether Entries and Problems are
	Entries  int64
	Problems int64  // of level error or fatal
	Only     string // the address of these
	Partial  bool   // more than was counted may match
	Read     int64
	Took     time.Duration
	Alone    bool      // there was no room to count
	Files    []ui.Link // of all that the page shows a part of
}

// skew is how far ahead of this clock an event may be without being of the future.
const skew = time.Minute

// A view is one request for the page.
type view struct {
	*console
	r      *http.Request // with the times as the API takes them, for links
	who    identity.Principal
	search ingest.Search
	fields []ingest.Field // that the reader has picked
	page   logsPage
}

// showLogs takes the query of GET /v1/logs, times as browsers send them,
// the time up to now (last), the fields that are picked (field), that of the
// chart (chart), patterns in place of entries (view) or only those that are new
// (new), and a term to add to the search (add).
func (c *console) showLogs(w http.ResponseWriter, r *http.Request) error {
	if term := r.URL.Query().Get("add"); term != "" {
		search := r.URL.Query().Get("q")
		if query, err := ingest.ParseQuery(search); err == nil { // else the page says what is wrong with it
			search = query.And(term)
		}
		http.Redirect(w, r, ui.With(r, "q", search, "add", ""), http.StatusSeeOther)
		return nil
	}
	v := &view{console: c, who: identity.FromContext(r.Context())}
	fields, err := pickedFields(r)
	if err != nil {
		return err
	}
	v.fields = fields
	shown, asked := ui.WithTimes(r, defaultLast, c.Clock())
	v.r, asked = shown, ui.Without(asked, own...)
	search, parsed := ingesthttp.ParseSearch(asked, c.Clock())
	v.search = search
	line := ui.Field{Label: "Search", Hint: "Words, or fields such as status:>=500"}
	v.page.Filters = ui.NewFilters(r, c.Directory.Projects(v.who.Organization), line, defaultLast, parsed)
	for _, name := range own {
		v.page.Filters.Keep(r, name)
	}
	if v.page.Filters.Menu, err = c.searches.menu(r); err != nil {
		return err
	}
	if v.page.Filters.Faulty() {
		c.write(w, r, http.StatusUnprocessableEntity, v.page)
		return nil
	}
	if parsed != nil {
		return parsed
	}
	if err := v.find(asked); err != nil {
		return ingesthttp.NotFound(err, v.search)
	}
	c.write(w, r, http.StatusOK, v.page)
	return nil
}

// download gives all that the page shows one page of as a file.
func (c *console) download(name, media string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		_, asked := ui.WithTimes(r, defaultLast, c.Clock())
		search, err := ingesthttp.ParseSearch(ui.Without(asked, own...), c.Clock())
		if err != nil {
			return err
		}
		search.Limit = 0
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		logs := &ingesthttp.Logs{Service: c.Service, Clock: c.Clock}
		if err := logs.Stream(w, r, search, media); err != nil {
			w.Header().Del("Content-Disposition") // the answer is a page
			return ingesthttp.NotFound(err, search)
		}
		return nil
	}
}

// find looks for the page's entries, and counts what is around them.
func (v *view) find(asked *http.Request) error {
	begun := v.Clock()
	v.search.Limit, v.search.MaxBytes = pageSize, maxPage
	v.page.Oldest, v.page.Live = v.search.OldestFirst, liveOf(v.r)
	v.hideFuture()
	v.page.Searched, v.page.Views = true, v.views()
	v.page.Rejected = rejectedOf(v.search.Project)
	look := v.findEntries
	if v.page.Views[1].Current {
		look = v.lookForPatterns
	}
	nothing, err := look(asked)
	if err != nil {
		return err
	}
	for _, file := range []ui.Link{{Text: "NDJSON", Href: "/ndjson"}, {Text: "CSV", Href: "/csv"}} {
		query := v.r.URL.Query()
		query.Del("cursor")
		if v.search.To != nil {
			query.Set("to", v.search.To.String())
		}
		file.Href = v.r.URL.Path + file.Href + "?" + query.Encode()
		v.page.Summary.Files = append(v.page.Summary.Files, file)
	}
	v.page.Summary.Took = v.Clock().Sub(begun).Round(time.Millisecond)
	if nothing && v.search.Query.String() == "" {
		return v.findNewest()
	}
	return nil
}

// findEntries finds entries, and reports whether there are none.
func (v *view) findEntries(asked *http.Request) (nothing bool, err error) {
	answer, err := v.Service.Search(v.r.Context(), v.who, v.search)
	if err != nil {
		return false, err
	}
	v.page.Pager = ui.NewPager(v.r, ingesthttp.NextCursor(asked, answer.Next))
	v.page.Summary.Read = answer.Read
	v.show(answer.Found)
	answer.Close()
	if err := v.chart(answer.Found); err != nil {
		return false, err
	}
	return len(answer.Found) == 0 && answer.Next == nil, v.facets()
}

// hideFuture ends a search now that has no end: one entry of a wrong
// clock would stay on top for years.
func (v *view) hideFuture() {
	if v.search.To != nil || v.search.OldestFirst {
		return
	}
	now := ingest.InstantOf(v.Clock().Add(skew))
	v.search.To = &now
	v.page.Future = ui.With(v.r, "to", "9999-12-31T23:59:59.999999999Z", "last", "")
}

// count counts for the page, within some bytes; false: while there is
// no room for that, the page does without.
func (v *view) count(count ingest.Count, top int) (counted ingest.Counted, ok bool, err error) {
	counted, err = v.Service.Count(v.r.Context(), v.who, count, top)
	alone, err := v.isAlone(err)
	v.page.Summary.Read += counted.Read
	return counted, err == nil && !alone, err
}

// isAlone reports whether the page does without a count, and returns other errors.
func (v *view) isAlone(err error) (bool, error) {
	var problem *httpapi.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusTooManyRequests {
		v.page.Summary.Alone = true
		return true, nil
	}
	return false, err
}

// chart counts the entries over time. A search without a beginning has no chart.
func (v *view) chart(found []ingest.Found) error {
	if v.search.From == nil {
		return nil
	}
	count := ingest.Count{Search: v.counted(), MaxBytes: chartBytes}
	count.Search.To = v.chartEnd(found)
	count.Every = ingesthttp.AutoWidth(count.Search.To.Seconds - count.Search.From.Seconds - int64(skew/time.Second))
	counted, ok, err := v.count(count, 0)
	if !ok {
		return err
	}
	buckets := make([]map[string]int64, len(counted.Buckets))
	for i, levels := range counted.Buckets {
		buckets[i] = levels.ByName()
	}
	s := &v.page.Summary
	s.Counted, s.Entries, s.Partial = true, counted.Levels.Sum(), counted.From != nil
	s.Problems = counted.Levels[ingest.SeverityError] + counted.Levels[ingest.SeverityFatal]
	s.Only = ui.With(v.r, "q", v.search.Query.And("level:error OR level:fatal"))
	if s.Entries > 0 {
		v.page.Chart = ui.NewHistogram(v.r, "entries", time.Unix(count.FirstBucket(), 0), count.Every, nil, buckets)
	}
	return v.chartBy(count)
}

// chartEnd is where a chart ends: with the search, or with the newest
// entry where that is sooner and known, so that the far future does not
// make all bars wide.
func (v *view) chartEnd(found []ingest.Found) *ingest.Instant {
	end := ingest.InstantOf(v.Clock().Add(skew))
	switch {
	case v.search.To == nil:
	case len(found) > 0 && v.search.Start.After == nil && !v.search.OldestFirst && end.Compare(*v.search.To) < 0:
		end = found[0].Time.Plus(1)
	default:
		end = *v.search.To
	}
	return &end
}

// counted is the search without the page that is shown of it.
func (v *view) counted() ingest.Search {
	search := v.search
	search.Start, search.OldestFirst = ingest.Position{}, false
	return search
}

// findNewest says where the newest entry is, if the time has none.
func (v *view) findNewest() error {
	search := ingest.Search{Project: v.search.Project, Levels: v.search.Levels, Environment: v.search.Environment, Limit: 1}
	answer, err := v.Service.Search(v.r.Context(), v.who, search)
	if err != nil {
		return err
	}
	defer answer.Close()
	if len(answer.Found) == 1 {
		at := answer.Found[0].Time
		begin, end := at.Plus(-int64(time.Hour/time.Second)), at.Plus(1)
		v.page.Newest = ui.With(v.r, "from", begin.String(), "to", end.String(), "last", "")
	}
	return nil
}

func (c *console) write(w http.ResponseWriter, r *http.Request, status int, page logsPage) {
	for name, values := range r.URL.Query() {
		if name != "cursor" {
			for _, value := range values {
				page.Kept = append(page.Kept, [2]string{name, value})
			}
		}
	}
	c.pages.Write(w, r, status, "logs", ui.View{Title: "Logs", Wide: true, Data: page, Flash: ui.TakeFlash(w, r, savedFlashes)})
}
