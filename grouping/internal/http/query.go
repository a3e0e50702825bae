package http

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
)

// Bounds of a query.
const (
	maxWords = 20
	maxValue = 256 // bytes of a searched value
)

// ParseQuery reads a list's filters and page.
func ParseQuery(r *http.Request) (q postgres.GroupQuery, err error) {
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return q, err
	}
	q.Limit = page.Limit
	values := r.URL.Query()
	for _, parse := range []func(*postgres.GroupQuery, url.Values) error{parseStatus, parseSpan, parseLevels, parseEnvironments, parseWords} {
		if err := parse(&q, values); err != nil {
			return q, err
		}
	}
	if page.Cursor != "" {
		err = httpapi.DecodeCursor(r, page.Cursor, &q.After)
	}
	return q, err
}

func parseStatus(q *postgres.GroupQuery, values url.Values) error {
	word := values.Get("status")
	if word == "" {
		return nil
	}
	status, ok := grouping.ParseStatus(word)
	if !ok {
		return invalid("status", word, "Use unresolved, resolved or ignored.")
	}
	q.Status = status
	return nil
}

func parseSpan(q *postgres.GroupQuery, values url.Values) (err error) {
	if q.From, err = httpapi.QueryTime(values, "from"); err != nil {
		return err
	}
	if q.To, err = httpapi.QueryTime(values, "to"); err != nil {
		return err
	}
	return httpapi.CheckSpan(values, q.From, q.To)
}

func parseLevels(q *postgres.GroupQuery, values url.Values) error {
	for _, word := range values["level"] {
		level, ok := grouping.ParseSeverity(word)
		if !ok {
			return invalid("level", word, "Use debug, info, warn, error or fatal; repeat level for several.")
		}
		q.Severities |= level
	}
	return nil
}

func parseEnvironments(q *postgres.GroupQuery, values url.Values) error {
	for _, name := range values["environment"] {
		if !searchable(name) {
			return invalid("environment", name, fmt.Sprintf("Use a name of at most %d bytes of UTF-8 without U+0000.", maxValue))
		}
		if name != "" {
			q.Environments = append(q.Environments, name)
		}
	}
	return nil
}

func parseWords(q *postgres.GroupQuery, values url.Values) error {
	text := values.Get("q")
	words := strings.Fields(text)
	if !searchable(text) || len(words) > maxWords {
		return invalid("q", text, fmt.Sprintf("Use at most %d words and %d bytes of UTF-8 without U+0000.", maxWords, maxValue))
	}
	if text != "" && len(words) == 0 {
		return invalid("q", text, "Name words of title, type or culprit; all of them must stand there, in any order.")
	}
	q.Words = words
	return nil
}

// searchable reports whether Postgres can search for s.
func searchable(s string) bool {
	return len(s) <= maxValue && strings.ToValidUTF8(s, "") == s && strings.IndexByte(s, 0) < 0
}

func invalid(name, value, fix string) error {
	return httpapi.Invalid("?"+name, httpapi.CodeInvalidRequest, fmt.Sprintf("%s is %q.", name, value), fix)
}
