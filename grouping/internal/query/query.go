// Package query reads which groups somebody asks for,
// of the API and of the console alike.
package query

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// Bounds of a query.
const (
	maxWords = 20
	maxValue = 256 // bytes of a searched value
)

// Parse reads a list's filters and page.
func Parse(r *http.Request) (q postgres.GroupQuery, err error) {
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return q, err
	}
	q.Limit = page.Limit
	values := r.URL.Query()
	for _, parse := range []func(*postgres.GroupQuery, url.Values) error{parseStatus, parseSpan, parseLevels, parseEnvironments, parseWords, parseOthers} {
		if err := parse(&q, values); err != nil {
			return q, err
		}
	}
	if q.Assignee == grouping.Me {
		who, _ := identity.PrincipalOf(r.Context())
		if q.Assignee = who.Member; q.Assignee == "" {
			parameter := "q"
			if values.Get("assignee") != "" {
				parameter = "assignee"
			}
			return q, Invalid(parameter, values.Get(parameter), "Name whose errors you look for: only signed-in members are me.")
		}
	}
	if page.Cursor != "" {
		err = httpapi.DecodeCursor(r, page.Cursor, &q.After)
	}
	return q, err
}

func parseStatus(q *postgres.GroupQuery, values url.Values) error {
	word := values.Get("status")
	status, known := grouping.ParseStatus(word)
	if word != "" && !known {
		return Invalid("status", word, "Use unresolved, resolved, ignored or archived.")
	}
	if known {
		q.Status = status
	}
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
		level, known := grouping.ParseSeverity(word)
		if !known {
			return Invalid("level", word, "Use debug, info, warn, error or fatal; repeat level for several.")
		}
		q.Severities |= level
	}
	return nil
}

func parseEnvironments(q *postgres.GroupQuery, values url.Values) error {
	for _, name := range values["environment"] {
		if !Searchable(name) {
			return Invalid("environment", name, fmt.Sprintf("Use a name of at most %d bytes of UTF-8 without U+0000.", maxValue))
		}
		if name != "" {
			q.Environments = append(q.Environments, name)
		}
	}
	return nil
}

func parseWords(q *postgres.GroupQuery, values url.Values) error {
	text := values.Get("q")
	words := grouping.SearchTerms(text)
	if !Searchable(text) || len(words) > maxWords {
		return Invalid("q", text, fmt.Sprintf("Use at most %d words and %d bytes of UTF-8 without U+0000.", maxWords, maxValue))
	}
	if text != "" && len(words) == 0 {
		return Invalid("q", text, "Name words of title, type or culprit; all of them must stand there, in any order.")
	}
	named := map[string]bool{} // bounded by the terms
	for _, word := range words {
		if named[word.Field] && word.IsSingle() {
			return Invalid("q", text, fmt.Sprintf("Name %s: once.", word.Field))
		}
		named[word.Field] = true
		switch err := ask(q, word); {
		case errors.Is(err, errAlertsAlone):
			return Invalid("q", text, fmt.Sprintf("Alerts alone know %s:. Put %q in quotes to look for it as a word.", word.Field, word.Field+":"+word.Value))
		case err != nil:
			return Invalid("q", text, fmt.Sprintf("%q is unknown. Use is: with unresolved, resolved, ignored or archived, and level: with debug, info, warn, "+
				"error or fatal; put %q in quotes to look for it as a word.", word.Value, word.Field+":"+word.Value))
		}
	}
	for field, parameter := range map[string]string{"is": "status", "assigned": "assignee"} {
		if value := values.Get(parameter); named[field] && value != "" {
			return Invalid(parameter, value, fmt.Sprintf("The search line has %s: already.", field))
		}
	}
	return nil
}

// Without is a search line without the terms of a field.
func Without(line, field string) string {
	var rest []string
	for word := range grouping.SearchWords(line) {
		if terms := grouping.SearchTerms(word); len(terms) == 0 || terms[0].Field != field {
			rest = append(rest, word)
		}
	}
	return strings.Join(rest, " ")
}

// Offers are terms, or how they begin, that somebody may want to type.
func Offers() []string {
	return strings.Fields(`is:unresolved is:resolved is:ignored is:archived assigned:me assigned:nobody
		level:fatal level:error level:warn level:info level:debug type: release: environment:`)
}

// ask adds what the term asks for.
func ask(q *postgres.GroupQuery, t grouping.Term) error {
	switch t.Field {
	case grouping.FieldIs:
		return parseStatus(q, url.Values{"status": {t.Value}})
	case grouping.FieldAssigned:
		if q.Unassigned = t.Value == grouping.Nobody; !q.Unassigned {
			q.Assignee = t.Value
		}
	case grouping.FieldType:
		q.Type = t.Value
	case grouping.FieldRelease:
		q.Release = t.Value
	case grouping.FieldEnvironment:
		q.Environments = append(q.Environments, t.Value)
	case grouping.FieldLevel:
		return parseLevels(q, url.Values{"level": {t.Value}})
	case grouping.FieldService, grouping.FieldHost:
		return errAlertsAlone
	default:
		q.Words = append(q.Words, t.Value)
	}
	return nil
}

// errAlertsAlone means that a list can't be searched by a field.
var errAlertsAlone = errors.New("only alerts know that field")

func parseOthers(q *postgres.GroupQuery, values url.Values) error {
	if named := values.Get("assignee"); named != "" {
		q.Assignee = named
	}
	if !Searchable(q.Assignee) {
		return Invalid("assignee", q.Assignee, fmt.Sprintf("Use at most %d bytes of UTF-8 without U+0000.", maxValue))
	}
	word := values.Get("new_since")
	if q.NewSince = word == "deploy"; word != "" && !q.NewSince {
		return Invalid("new_since", word, "Use deploy.")
	}
	switch by := postgres.Sorting(values.Get("sort")); by {
	case "", "last_seen":
	case postgres.ByFirstSeen, postgres.ByCount, postgres.ByUsers:
		q.Sort = by
	default:
		return Invalid("sort", string(by), "Use last_seen, first_seen, count or users.")
	}
	return nil
}

// Searchable reports whether Postgres can search for s.
func Searchable(s string) bool {
	return len(s) <= maxValue && strings.ToValidUTF8(s, "") == s && strings.IndexByte(s, 0) < 0
}

// Invalid is the answer to a parameter that is wrong.
func Invalid(name, value, fix string) error {
	return httpapi.Invalid("?"+name, httpapi.CodeInvalidRequest, fmt.Sprintf("%s is %q.", name, value), fix)
}
