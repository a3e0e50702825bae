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
	"sync/atomic"
	"time"
)

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
