package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

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
	return Invalid("?to", CodeInvalidRequest, fmt.Sprintf("to is %q.", query.Get("to")),
		fmt.Sprintf("Use a time that is not before from, which is %q.", query.Get("from")))
}
