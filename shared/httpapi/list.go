package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of a list's page.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// A List is one page. NextCursor is nil on the last.
type List[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor" description:"Where the list goes on; null at its end"`
}

// OnePage is what a list has beside its items that always has one page.
type OnePage struct {
	NextCursor Null `json:"next_cursor" nullable:"true" description:"The list has one page"`
}

// OrNull is nil for an empty value, such as a text that there may not be.
func OrNull[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// TimeOrNull is a time in UTC; nil for the zero time.
func TimeOrNull(at time.Time) *time.Time {
	return OrNull(at.UTC())
}

// Null is encoded as null.
type Null struct{}

// MarshalJSON encodes it.
func (Null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// JSONSchemaBytes describes it.
func (Null) JSONSchemaBytes() ([]byte, error) { return []byte(`{"type": "null"}`), nil }

// NewList returns a page of r's list, of at most limit items; one item
// more means that the list continues after the place that cursor
// returns for this page's last item.
func NewList[T any](r *http.Request, items []T, limit int, cursor func(last T) any) List[T] {
	if len(items) <= limit {
		return List[T]{Items: orEmpty(items)}
	}
	next := EncodeCursor(r, cursor(items[limit-1]))
	return List[T]{Items: items[:limit], NextCursor: &next}
}

// WriteList answers with one page of what was found, which may be one more
// than limit: show makes an item, and place its position, for the cursor.
func WriteList[F, I, P any](w http.ResponseWriter, r *http.Request, found []F, limit int, show func(F) I, place func(F) P) {
	WriteListUpTo(w, r, found, limit, nil, show, place)
}

// WriteListUpTo is WriteList of a search that may have stopped before
// it had found limit: then the list continues at stopped.
func WriteListUpTo[F, I, P any](w http.ResponseWriter, r *http.Request, found []F, limit int, stopped *P, show func(F) I, place func(F) P) {
	list := NewList(r, found, limit, func(last F) any { return place(last) })
	if list.NextCursor == nil && stopped != nil {
		next := EncodeCursor(r, *stopped)
		list.NextCursor = &next
	}
	items := make([]I, len(list.Items))
	for i, f := range list.Items {
		items[i] = show(f)
	}
	WriteJSON(w, http.StatusOK, List[I]{Items: items, NextCursor: list.NextCursor})
}

func orEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// A Page is a client's request for a part of a list.
type Page struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" description:"Most items of a page"`
	Cursor string `query:"cursor" description:"next_cursor of the page before"` // empty on the first page
}

// ParsePage reads limit and cursor from the query.
func ParsePage(r *http.Request) (Page, error) {
	query := r.URL.Query()
	page := Page{Limit: DefaultLimit, Cursor: query.Get("cursor")}
	text := query.Get("limit")
	if text == "" {
		return page, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > MaxLimit {
		return Page{}, Invalid("?limit", CodeInvalidRequest, fmt.Sprintf("limit is %q.", text),
			fmt.Sprintf("Use a whole number from 1 to %d.", MaxLimit))
	}
	page.Limit = limit
	return page, nil
}

// sealLength is the length of a cursor's signature, truncated
// HMAC-SHA-256, in bytes.
const sealLength = 16

// Cursors sign where a list continues, so that it can't be forged: a cursor
// is valid for its path, organization and filters. Safe for concurrent use.
type Cursors struct {
	key   atomic.Pointer[[]byte]
	whose func(context.Context) string
}

// NewCursors returns cursors that are usable once they have a key;
// whose returns a request's organization.
func NewCursors(whose func(ctx context.Context) string) *Cursors { return &Cursors{whose: whose} }

// ownCursors are for a router without lists, or in one process: their
// key ends with it.
func ownCursors() *Cursors {
	c, key := NewCursors(func(context.Context) string { return "" }), make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails: see crypto/rand
	c.Use(key)
	return c
}

// Use sets the key, shared by all processes that serve a list.
func (c *Cursors) Use(key []byte) { c.key.Store(&key) }

// CursorsReady returns nil once the cursors of r's router have their
// key, else a 500 to retry.
func CursorsReady(r *http.Request) error {
	if router := providedTo(r); router != nil && router.cursors.key.Load() == nil {
		return Unavailable("The service is starting. Send the request again.", time.Second)
	}
	return nil
}

func cursorsOf(r *http.Request) *Cursors {
	router := providedTo(r)
	if router == nil {
		panic("BUG: there are no cursors outside a router")
	}
	return router.cursors
}

// EncodeCursor returns an opaque cursor for a position in r's list.
func EncodeCursor(r *http.Request, position any) string {
	text, err := json.Marshal(position)
	if err != nil {
		panic("BUG: cannot encode a cursor: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(append(cursorsOf(r).seal(r, text), text...))
}

// DecodeCursor reads a cursor into position. It returns a 400 for one
// that EncodeCursor did not make for this list.
func DecodeCursor(r *http.Request, cursor string, position any) error {
	if err := CursorsReady(r); err != nil {
		return err
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(sealed) < sealLength {
		return InvalidCursor(cursor)
	}
	seal, text := sealed[:sealLength], sealed[sealLength:]
	if !hmac.Equal(seal, cursorsOf(r).seal(r, text)) || json.Unmarshal(text, position) != nil {
		return InvalidCursor(cursor)
	}
	return nil
}

// InvalidCursor returns the 400 for a cursor of another list.
func InvalidCursor(cursor string) error {
	return Invalid("?cursor", "invalid_cursor", fmt.Sprintf("The cursor %q is none of this list.", cursor),
		"Use next_cursor of the page before, unchanged and with the same filters, or leave cursor out to start again.")
}

// seal returns a position's signature. Each part has its length before
// it, so that parts can't be shifted.
func (c *Cursors) seal(r *http.Request, position []byte) []byte {
	mac := hmac.New(sha256.New, *c.key.Load())
	for _, part := range []string{r.URL.Path, c.whose(r.Context()), filters(r.URL.Query()), string(position)} {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return mac.Sum(nil)[:sealLength]
}

// filters returns a query's parameters other than limit and cursor.
// Those without a value do not count.
func filters(query url.Values) string {
	query.Del("cursor")
	query.Del("limit")
	for name, values := range query {
		if values = slices.DeleteFunc(values, func(value string) bool { return value == "" }); len(values) == 0 {
			query.Del(name)
		} else {
			query[name] = values
		}
	}
	return query.Encode()
}

// OnlyKnown refuses an unreadable query, a parameter that is neither in
// names nor in repeatable, and a repeated one of names: an ignored
// filter would show too much.
func OnlyKnown(r *http.Request, repeatable []string, names ...string) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Invalid("?", CodeInvalidRequest, fmt.Sprintf("The query can't be read: %v.", err),
			"Separate parameters by &, and escape what is special in their values.")
	}
	for name, given := range query {
		switch {
		case slices.Contains(repeatable, name):
		case !slices.Contains(names, name):
			return Invalid("?"+name, CodeInvalidRequest, fmt.Sprintf("The parameter %q is unknown.", name), useOnly(slices.Concat(names, repeatable)))
		case len(given) > 1:
			return Invalid("?"+name, CodeInvalidRequest, fmt.Sprintf("%s is given %d times.", name, len(given)), "Give it once.")
		}
	}
	return nil
}

func useOnly(names []string) string {
	if len(names) == 0 {
		return "Leave it out: there is none here."
	}
	return "Use only: " + strings.Join(names, ", ") + "."
}

// QueryTime reads an RFC 3339 time in UTC, written with Z; zero if
// it is absent.
func QueryTime(query url.Values, name string) (time.Time, error) {
	text := query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.IsZero() || !strings.HasSuffix(text, "Z") {
		return time.Time{}, Invalid("?"+name, CodeInvalidRequest, fmt.Sprintf("%s is %q.", name, text),
			"Use an RFC 3339 time in UTC such as 2026-11-20T14:00:00Z.")
	}
	return at, nil
}

// CheckSpan refuses a query whose to is before its from: an empty list
// would hide the mistake. They may be equal, as windows of a poll may be.
func CheckSpan(query url.Values, from, to time.Time) error {
	if query.Get("from") == "" || query.Get("to") == "" || !to.Before(from) {
		return nil
	}
	return Invalid("?to", CodeInvalidRequest, fmt.Sprintf("The time begins at %q and ends at %q.", query.Get("from"), query.Get("to")),
		"Let it end when it begins, or later.")
}
