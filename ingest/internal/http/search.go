package http

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// Logs answers GET /v1/logs: what the log store keeps of the caller's organization.
type Logs struct {
	Store interface {
		Search(ctx context.Context, organization pg.Organization, search ingest.Search) (postgres.Result, error)
	}
	Directory *identity.Directory
}

// place is the form of a Place in a cursor.
type place struct {
	Seconds int64  `json:"s"`
	Nanos   uint32 `json:"n"`
	Batch   string `json:"b"`
	Index   int    `json:"i"`
}

// List answers with a page of entries.
func (l *Logs) List(w http.ResponseWriter, r *http.Request) error {
	organization := identity.FromContext(r.Context()).Organization
	search, err := ParseSearch(r)
	if err != nil {
		return err
	}
	if search.Project != "" {
		if owner, known := l.Directory.Organization(search.Project); !known || owner != organization {
			return httpapi.NotFound("project", search.Project)
		}
	}
	result, err := l.Store.Search(r.Context(), pg.Organization(organization), search)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	page := page{organization: organization, found: result.Found, next: NextCursor(result.Next)}
	if err := page.write(w); err != nil {
		panic(http.ErrAbortHandler) // the client went away, and must not take what it has got for whole
	}
	return nil
}

// NextCursor is the cursor of the page that starts at next; nil where there is none.
func NextCursor(next *ingest.Place) *string {
	if next == nil {
		return nil
	}
	cursor := httpapi.EncodeCursor(place{next.Time.Seconds, next.Time.Nanos, hex.EncodeToString(next.Batch[:]), next.Index})
	return &cursor
}

// ParseSearch reads a search from the query of GET /v1/logs. Anything that is not understood is a 400 that names it: a
// filter that was overlooked would show too much.
func ParseSearch(r *http.Request) (ingest.Search, error) {
	err := httpapi.OnlyKnown(r, []string{"level"}, "project", "from", "to", "environment", "q", "order", "limit", "cursor")
	if err != nil {
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
		func() error { return readLevels(&search.Levels, query) },
		func() error { return readWords(&search.Words, query) },
		func() error { return readOrder(&search.OldestFirst, query) },
		func() error { return readCursor(&search.After, page.Cursor) },
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

func readLevels(into *ingest.LevelSet, query url.Values) error {
	for _, text := range query["level"] {
		level, ok := ingest.ParseLevel([]byte(text))
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

func readCursor(into **ingest.Place, cursor string) error {
	if cursor == "" {
		return nil
	}
	var at place
	if err := httpapi.DecodeCursor(cursor, &at); err != nil {
		return err
	}
	after := ingest.Place{Time: ingest.Instant{Seconds: at.Seconds, Nanos: at.Nanos}, Index: at.Index}
	if n, err := hex.Decode(after.Batch[:], []byte(at.Batch[:min(len(at.Batch), 32)])); err != nil || n != len(after.Batch) {
		return httpapi.DecodeCursor("-", &at) // a cursor of our form that we never made
	}
	*into = &after
	return nil
}
