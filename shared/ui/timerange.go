package ui

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A TimeRange filters a list by time, in UTC: from, inclusive, to, exclusive.
type TimeRange struct {
	From, To Field
	Recent   []Link // to the last hour, day and week; other filters stay
}

// localTime is the value of a browser's field of type datetime-local.
const localTime = "2006-01-02T15:04:05.999"

// recent are the spans that a link chooses.
var recent = []struct {
	text string
	span time.Duration
}{
	{"Last hour", time.Hour}, {"Last 24 hours", 24 * time.Hour}, {"Last 7 days", 7 * 24 * time.Hour},
}

// NewTimeRange returns the range of the query of r. fault is what was wrong
// with that query, or nil.
func NewTimeRange(r *http.Request, now time.Time, fault error) TimeRange {
	shown := TimeRange{From: timeField(r, "from", "From (UTC)", fault), To: timeField(r, "to", "To (UTC)", fault)}
	for _, last := range recent {
		query := r.URL.Query()
		query.Del("to")
		query.Set("from", now.Add(-last.span).UTC().Truncate(time.Minute).Format(time.RFC3339))
		shown.Recent = append(shown.Recent, Link{Text: last.text, Href: address(r, query, "")})
	}
	return shown
}

func timeField(r *http.Request, name, label string, fault error) Field {
	field := Field{Name: name, Label: label, Type: "datetime-local", Step: "any", Value: r.URL.Query().Get(name), Fault: QueryFault(fault, name)}
	if at, err := time.Parse(time.RFC3339, field.Value); err == nil {
		field.Value = at.UTC().Format(localTime)
	}
	return field
}

// WithTimesInUTC returns r with its parameters from and to in RFC 3339:
// a field of type datetime-local sends a time without a zone.
func WithTimesInUTC(r *http.Request) *http.Request {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || !completeTimes(query) {
		return r
	}
	changed, address := r.WithContext(r.Context()), *r.URL
	address.RawQuery = query.Encode()
	changed.URL = &address
	return changed
}

// completeTimes adds what is missing and reports whether anything was.
func completeTimes(query url.Values) (changed bool) {
	for _, name := range []string{"from", "to"} {
		for i, text := range query[name] {
			if at, ok := parseLocalTime(text); ok {
				query[name][i], changed = at.Format(time.RFC3339Nano), true
			}
		}
	}
	return changed
}

// parseLocalTime reads a time that may end with its minutes.
func parseLocalTime(text string) (time.Time, bool) {
	if strings.Count(text, ":") == 1 {
		text += ":00"
	}
	at, err := time.Parse(localTime, text)
	return at, err == nil
}
