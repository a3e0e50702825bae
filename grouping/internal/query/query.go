// Package query reads which groups somebody asks for,
// of the API and of the console alike.
package query

import (
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

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
	if q.Assignee == me {
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

// Terms of a search line, and who they may name beside members and labels.
const (
	me     = "me"
	nobody = "nobody"
)

func parseWords(q *postgres.GroupQuery, values url.Values) error {
	text := values.Get("q")
	words := termsOf(text)
	if !Searchable(text) || len(words) > maxWords {
		return Invalid("q", text, fmt.Sprintf("Use at most %d words and %d bytes of UTF-8 without U+0000.", maxWords, maxValue))
	}
	if text != "" && len(words) == 0 {
		return Invalid("q", text, "Name words of title, type or culprit; all of them must stand there, in any order.")
	}
	named := map[string]bool{} // bounded by the terms
	for _, word := range words {
		if named[word.field] && word.isSingle() {
			return Invalid("q", text, fmt.Sprintf("Name %s: once.", word.field))
		}
		named[word.field] = true
		if word.ask(q) != nil {
			return Invalid("q", text, fmt.Sprintf("%q is unknown. Use is: with unresolved, resolved, ignored or archived, and level: with debug, info, warn, "+
				"error or fatal; put %q in quotes to look for it as a word.", word.value, word.field+":"+word.value))
		}
	}
	for field, parameter := range map[string]string{"is": "status", "assigned": "assignee"} {
		if value := values.Get(parameter); named[field] && value != "" {
			return Invalid(parameter, value, fmt.Sprintf("The search line has %s: already.", field))
		}
	}
	return nil
}

// A term is a word of a search line, or a field that it names, such as is:resolved.
type term struct{ field, value string }

// Words divides a search line at its spaces, but not within quotes.
func Words(line string) iter.Seq[string] {
	quoted := false
	return strings.FieldsFuncSeq(line, func(r rune) bool {
		quoted = quoted != (r == '"')
		return !quoted && unicode.IsSpace(r)
	})
}

// termsOf are the terms of a search line. In quotes nothing names a field.
func termsOf(line string) (terms []term) {
	for word := range Words(line) {
		of := term{value: word}
		if field, value, _ := strings.Cut(word, ":"); value != "" && slices.Contains(fields, field) {
			of = term{field, value}
		}
		if of.value = strings.ReplaceAll(of.value, `"`, ""); of.value != "" {
			terms = append(terms, of)
		}
	}
	return terms
}

// Without is a search line without the terms of a field.
func Without(line, field string) string {
	var rest []string
	for word := range Words(line) {
		if terms := termsOf(word); len(terms) == 0 || terms[0].field != field {
			rest = append(rest, word)
		}
	}
	return strings.Join(rest, " ")
}

// Fields of a search line. An entry can have one value of the first ones.
var fields = []string{"is", "assigned", "type", "release", "environment", "level"}

// Offers are terms, or how they begin, that somebody may want to type.
func Offers() []string {
	return strings.Fields(`is:unresolved is:resolved is:ignored is:archived assigned:me assigned:nobody
		level:fatal level:error level:warn level:info level:debug type: release: environment:`)
}

func (t term) isSingle() bool { return slices.Contains(fields[:4], t.field) }

// ask adds what the term asks for.
func (t term) ask(q *postgres.GroupQuery) error {
	switch t.field {
	case "is":
		return parseStatus(q, url.Values{"status": {t.value}})
	case "assigned":
		if q.Unassigned = t.value == nobody; !q.Unassigned {
			q.Assignee = t.value
		}
	case "type":
		q.Type = t.value
	case "release":
		q.Release = t.value
	case "environment":
		q.Environments = append(q.Environments, t.value)
	case "level":
		return parseLevels(q, url.Values{"level": {t.value}})
	default:
		q.Words = append(q.Words, t.value)
	}
	return nil
}

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
