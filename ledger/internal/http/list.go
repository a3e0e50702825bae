package http

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// A page is the requested part of a list with cursors of type C.
type page[C any] struct {
	from, to time.Time // half-open
	after    C         // where it continues; zero: the start
	limit    int
}

// spanQuery is the query of a list by time.
type spanQuery struct {
	From time.Time `query:"from" description:"Earliest instant, inclusive"`
	To   time.Time `query:"to" description:"Latest instant, exclusive"`
	httpapi.Page
}

// pageOf parses the requested page of r.
func pageOf[C any](r *http.Request) (asked page[C], err error) {
	parsed, err := httpapi.ParsePage(r)
	if err != nil {
		return asked, err
	}
	asked.limit = parsed.Limit
	if asked.from, asked.to, err = span(r); err != nil || parsed.Cursor == "" {
		return asked, err
	}
	return asked, httpapi.DecodeCursor(r, parsed.Cursor, &asked.after)
}

// instant parses a time of the query; fallback where it is absent.
func instant(r *http.Request, name string, fallback time.Time) (time.Time, error) {
	at, err := httpapi.QueryTime(r.URL.Query(), name)
	switch {
	case err != nil:
		return at, err
	case at.IsZero():
		return fallback, nil
	case at.Before(earliest()) || at.After(latest()):
		return at, httpapi.Invalid("?"+name, httpapi.CodeInvalidRequest, fmt.Sprintf("%s is %q.", name, r.URL.Query().Get(name)),
			"Use a time of the years 1970 to 8999.")
	}
	return at, nil
}

// The default span of a list.
func earliest() time.Time { return time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC) }
func latest() time.Time   { return time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) }

// span parses from and to of the query: half-open, all time where absent.
func span(r *http.Request) (from, to time.Time, err error) {
	from, errFrom := instant(r, "from", earliest())
	to, errTo := instant(r, "to", latest())
	if err = errors.Join(errFrom, errTo); err == nil {
		err = httpapi.CheckSpan(r.URL.Query(), from, to)
	}
	return from, to, err
}
