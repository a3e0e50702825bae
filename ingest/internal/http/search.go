package http

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

// Logs serves GET /v1/logs: the stored entries of the caller's organization.
type Logs struct {
	Service *searches.Service
	Clock   func() time.Time
}

// List answers with a page of entries, or, by preference, with a
// line per matching entry.
func (l *Logs) List(w http.ResponseWriter, r *http.Request) error {
	who := identity.FromContext(r.Context())
	search, err := ParseSearch(r)
	if err != nil {
		return err
	}
	w.Header().Set("Vary", "Accept")
	if httpapi.Preferred(r, httpapi.TypeJSON, httpapi.TypeLines) == httpapi.TypeLines {
		return l.stream(w, r, who, search)
	}
	answer, err := l.Service.Search(r.Context(), who, search)
	if err != nil {
		return NotFound(err, search)
	}
	defer answer.Close()
	w.Header().Set("Content-Type", "application/json")
	page := page{organization: who.Organization, found: answer.Found, next: NextCursor(r, answer.Next), incomplete: answer.Incomplete}
	out := httpapi.NewPacedWriter(w)
	answer.AllowEviction(out.Stop)
	return page.write(out)
}

// NotFound is the 404 for a project that the caller can't read; other errors stay.
func NotFound(err error, search ingest.Search) error {
	if errors.Is(err, searches.ErrNoProject) {
		return httpapi.NotFound("project", search.Project)
	}
	return err
}

// logsQuery is the query of GET /v1/logs.
type logsQuery struct {
	Project     string    `query:"project" description:"Only this project"`
	From        time.Time `query:"from" description:"Event time, inclusive"`
	To          time.Time `query:"to" description:"Event time, exclusive"`
	Levels      []string  `query:"level" enum:"debug,info,warn,error,fatal" description:"Only these levels"`
	Environment string    `query:"environment" description:"The entry's environment, or its key's where it names none"`
	Words       string    `query:"q" description:"Words that the message holds, all of them, whatever their case"`
	Order       string    `query:"order" enum:"desc,asc" default:"desc" description:"By event time"`
	httpapi.Page
}

// ParseSearch parses the query of GET /v1/logs. An invalid parameter is
// a 400 that names it: an ignored filter would show too much.
func ParseSearch(r *http.Request) (ingest.Search, error) {
	if err := openapi.OnlyKnown(r, logsQuery{}); err != nil {
		return ingest.Search{}, err
	}
	if err := httpapi.CursorsReady(r); err != nil {
		return ingest.Search{}, err
	}
	query := r.URL.Query()
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return ingest.Search{}, err
	}
	search := ingest.Search{Project: query.Get("project"), Environment: query.Get("environment"), Limit: page.Limit}
	for _, read := range []func() error{
		func() error { return readTime(&search.From, query, "from") },
		func() error { return readTime(&search.To, query, "to") },
		func() error { return checkSpan(&search, query) },
		func() error { return readLevels(&search.Levels, query) },
		func() error { return readWords(&search.Words, query) },
		func() error { return readOrder(&search.OldestFirst, query) },
		func() error { return readCursor(&search.Start, r, page.Cursor) },
	} {
		if err := read(); err != nil {
			return ingest.Search{}, err
		}
	}
	return search, nil
}

func readTime(into **ingest.Instant, query url.Values, name string) error {
	text := query.Get(name)
	if text == "" {
		return nil
	}
	at, ok := ingest.ParseInstant([]byte(text))
	if !ok {
		return httpapi.Invalid("?"+name, "invalid_timestamp", fmt.Sprintf("%s is %q, not a UTC time of RFC 3339.", name, text),
			"Write it as 2026-01-31T12:00:00Z, with a fraction of 1 to 9 digits or none.")
	}
	*into = &at
	return nil
}

func checkSpan(search *ingest.Search, query url.Values) error {
	if search.From == nil || search.To == nil {
		return nil
	}
	return httpapi.CheckSpan(query, search.From.Time(), search.To.Time())
}

func readLevels(into *ingest.SeveritySet, query url.Values) error {
	for _, text := range query["level"] {
		level, ok := ingest.ParseSeverity([]byte(text))
		if !ok {
			return httpapi.Invalid("?level", "invalid_level", fmt.Sprintf("%q is not a level.", text),
				"Use debug, info, warn, error or fatal; repeat level for several.")
		}
		*into = into.With(level)
	}
	return nil
}

func readWords(into *ingest.Words, query url.Values) error {
	text := query.Get("q")
	*into = ingest.ParseWords(text)
	if text != "" && len(*into) == 0 {
		return httpapi.Invalid("?q", httpapi.CodeInvalidRequest, fmt.Sprintf("q is %q, which holds no word.", text),
			"Name words of the message: letters and digits; all of them must stand in it, in any order.")
	}
	return nil
}

func readOrder(oldestFirst *bool, query url.Values) error {
	switch order := query.Get("order"); order {
	case "", "desc":
	case "asc":
		*oldestFirst = true
	default:
		return httpapi.Invalid("?order", httpapi.CodeInvalidRequest, fmt.Sprintf("order is %q.", order), "Use desc (newest first) or asc.")
	}
	return nil
}
