package httpapi

import (
	"fmt"
	"net/http"
	"strconv"
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
