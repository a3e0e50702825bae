package console

import (
	"embed"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

//go:embed templates/*.html
var templates embed.FS

const (
	pageSize = 50
	// maxMessage keeps a page readable, as an entry may have 512 KB.
	maxMessage = 1 << 10 // bytes
	maxEntry   = 8 << 10 // bytes
	// Entries are read whole, so a page of large ones has fewer.
	maxPage = 2 << 20 // bytes
)

// Config holds what the page needs.
type Config struct {
	Service   *searches.Service
	Tails     *ingesthttp.Tails
	Directory *identity.Directory
	Guard     *identity.Guard
	Clock     func() time.Time
}

type console struct {
	Config
	pages *ui.Pages
}

// Mount adds the page to router.
func Mount(router chi.Router, config Config) {
	c := &console{Config: config, pages: ui.NewPages(ui.Logs, templates)}
	c.pages.Mount(router, config.Guard, func(r chi.Router) {
		r.Get("/console/logs", c.pages.Handle(c.showLogs))
		r.Get("/console/logs/tail", httpapi.Handle(c.tail))
	})
}

type logsPage struct {
	Filters  ui.Filters
	Entries  []shownEntry
	Searched bool   // false: the search was not understood
	Oldest   bool   // the oldest first
	Future   string // the address of the same with entries of the future; empty: they are not hidden
	Pager    ui.Pager
	Live     ui.Live
}

// skew is how far ahead of this clock an event may be without being of the future.
const skew = time.Minute

// hideFuture ends a search now that has no end: one entry of a wrong
// clock would stay on top for years.
func (c *console) hideFuture(r *http.Request, search *ingest.Search) (shown string) {
	if search.To != nil || search.OldestFirst {
		return ""
	}
	now := ingest.InstantOf(c.Clock().Add(skew))
	search.To = &now
	query := r.URL.Query()
	query.Del("cursor")
	query.Set("to", "9999-12-31T23:59:59.999999999Z")
	return r.URL.Path + "?" + query.Encode()
}

// showLogs takes the query of GET /v1/logs, and times as browsers send them.
func (c *console) showLogs(w http.ResponseWriter, r *http.Request) error {
	who := identity.FromContext(r.Context())
	r = ui.WithTimesInUTC(r)
	search, err := ingesthttp.ParseSearch(r, c.Clock())
	line := ui.Field{Label: "Search", Hint: "Words, or fields such as status:>=500"}
	page := logsPage{Filters: ui.NewFilters(r, c.Directory.Projects(who.Organization), line, c.Clock(), err)}
	if page.Filters.Faulty() {
		c.write(w, r, http.StatusUnprocessableEntity, page)
		return nil
	}
	if err != nil {
		return err
	}
	search.Limit, search.MaxBytes = pageSize, maxPage
	page.Live = liveOf(r)
	page.Oldest, page.Future = search.OldestFirst, c.hideFuture(r, &search)
	answer, err := c.Service.Search(r.Context(), who, search)
	if err != nil {
		return ingesthttp.NotFound(err, search)
	}
	defer answer.Close()
	answer.AllowEviction(func() { httpapi.StopWriting(w) })
	page.Searched, page.Pager = true, ui.NewPager(r, ingesthttp.NextCursor(r, answer.Next))
	for _, found := range answer.Found {
		page.Entries = append(page.Entries, c.show(found))
	}
	c.write(w, r, http.StatusOK, page)
	return nil
}

func (c *console) write(w http.ResponseWriter, r *http.Request, status int, page logsPage) {
	c.pages.Write(w, r, status, "logs", ui.View{Title: "Logs", Data: page})
}

// A shownEntry is an entry as the page shows it.
type shownEntry struct {
	Time        string // event time as it was sent, to its last digit
	Shown       string // the same in short, to the millisecond
	ReceivedAt  time.Time
	Level       ui.Level
	Project     string
	Environment string
	Message     string
	Text        string // the entry, indented
	Cut         bool   // Text is only its beginning
	Bytes       int64
}

func (c *console) show(found ingest.Found) shownEntry {
	entry := shownEntry{
		Time: found.Time.String(), Shown: found.Time.Time().Format("2006-01-02 15:04:05.000"), ReceivedAt: found.ReceivedAt, Level: ui.Level(found.Level.String()),
		Project: c.Directory.Name(found.Project), Environment: found.Environment, Bytes: int64(len(found.Text)),
	}
	if read, err := ingest.ReadBack(found.Text); err == nil {
		entry.Message, _ = beginning(string(read.Message), maxMessage)
	}
	entry.Text, entry.Cut = indent(found.Text, maxEntry)
	return entry
}

// indent formats compact JSON over several lines, up to limit bytes at
// any depth. Other text is only cut at the limit.
func indent(text []byte, limit int) (indented string, cut bool) {
	out, depth := make([]byte, 0, limit), 0
	for i := 0; i < len(text); i++ {
		if len(out) > limit {
			return beginning(string(out), limit)
		}
		switch c := text[i]; {
		case c == '"':
			length := stringLength(text[i:], limit)
			out = append(out, text[i:i+length]...)
			i += length - 1
		case (c == '{' || c == '[') && i+1 < len(text) && text[i+1] == c+2: // empty
			out = append(out, c, c+2)
			i++
		case c == '{' || c == '[':
			depth++
			out = newLine(append(out, c), depth)
		case c == '}' || c == ']':
			depth = max(depth-1, 0)
			out = append(newLine(out, depth), c)
		case c == ',':
			out = newLine(append(out, c), depth)
		case c == ':':
			out = append(out, c, ' ')
		default:
			out = append(out, c)
		}
	}
	return beginning(string(out), limit)
}

func newLine(out []byte, depth int) []byte {
	out = append(out, '\n')
	for range depth {
		out = append(out, ' ', ' ')
	}
	return out
}

// stringLength is the length of the string at the beginning of text,
// quotes counted; little more than limit.
func stringLength(text []byte, limit int) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return i + 1
		case i > limit:
			return i
		case text[i] == '\\':
			i++
		}
	}
	return len(text)
}

// beginning returns as much of text as fits into limit bytes without
// cutting a character.
func beginning(text string, limit int) (begun string, cut bool) {
	if len(text) <= limit {
		return text, false
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…", true
}
