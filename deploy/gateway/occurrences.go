package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

// occurrencesRoute lists the log entries of an error group: ADR 47.
const occurrencesRoute = "/v1/error-groups/{group}/occurrences"

// OpenAPI describes what the gateway makes of several modules.
func OpenAPI() []byte { return module.Document([]openapi.Operation{occurrencesOperation}) }

var module = openapi.Module{
	Name: "gateway", Tag: "errors", Description: "Which of the errors in the logs are the same", Credential: openapi.APIKey,
	Problems: map[int]string{
		http.StatusBadRequest:          "A parameter is wrong; the answer names it",
		http.StatusUnauthorized:        "The API key is missing or not valid",
		http.StatusForbidden:           "forbidden: the key may only send logs (access write)",
		http.StatusNotFound:            "There is no such group in the key's organization",
		http.StatusTooManyRequests:     "rate_limited or overloaded, as for reading a group and searching logs. Wait for Retry-After",
		http.StatusInternalServerError: "The server failed",
	},
}

var occurrencesOperation = openapi.Operation{
	Route: "GET " + occurrencesRoute, ID: "listErrorGroupOccurrences",
	Summary: "All occurrences of an error group that are kept, the newest first, whole as log entries",
	Description: "Entries of its types and times are read from the logs, and those of the group are chosen. A page ends after about three seconds, or 8 MiB. " +
		"It counts against rate limits as what it asks for: the group, one to a few pages of logs, and as many selections. " +
		"Of merged groups it has the occurrences of all.",
	Query:  httpapi.Page{},
	Answer: openapi.Answer{Type: occurrenceListBody{}, Description: "A page of entries, by event time"},
}

// occurrenceListBody is what occurrencesAnswer is written as.
type occurrenceListBody struct {
	httpapi.List[occurrenceBody]
	Incomplete bool `json:"incomplete,omitempty" const:"true" description:"It timed out before the page was full. What it holds is certain; next_cursor goes on"`
}

type occurrenceBody struct {
	ID           string         `json:"id"`
	Organization string         `json:"organization"`
	Project      string         `json:"project"`
	Environment  string         `json:"environment" description:"The entry's own, or that of the key it came with"`
	ReceivedAt   time.Time      `json:"received_at"`
	Entry        map[string]any `json:"entry" description:"The entry as it was accepted, as GET /v1/logs has it"`
}

// For how long pages of the log store are begun, each of which takes up to two seconds, and how long
// all may take, of a program and of a page for people, which is rendered then.
const (
	beginTime  = time.Second
	apiTime    = 15 * time.Second
	pageTime   = 3500 * time.Millisecond
	renderTime = time.Second
)

// The reader's own request is kept: that of the gateway's router would be taken for one of a part of it.
type readerKey struct{}

func withReader(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), readerKey{}, r))
}

// occurrencesAnswer is a page, which keeps entries as they are.
type occurrencesAnswer struct {
	items      []json.RawMessage
	next       *string
	incomplete bool
}

func (a *occurrencesAnswer) encode() []byte {
	text := []byte(`{"items":[`)
	for i, item := range a.items {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, item...)
	}
	next, _ := json.Marshal(a.next) // a text never fails
	text = fmt.Appendf(text, `],"next_cursor":%s`, next)
	if a.incomplete {
		text = append(text, `,"incomplete":true`...)
	}
	return append(text, '}')
}

// serveOccurrences answers with a page of the log entries of an error group.
func (g *Gateway) serveOccurrences(w http.ResponseWriter, r *http.Request) error {
	reader, _ := r.Context().Value(readerKey{}).(*http.Request)
	ctx, cancel := context.WithTimeout(reader.Context(), apiTime)
	defer cancel()
	group := chi.URLParam(r, "group")
	path := "/v1/error-groups/" + group
	s := &entrySelection{gateway: g, reader: reader, group: group, logs: "/v1/logs", sel: path + "/select", most: answerBytes}
	found := g.askAs(ctx, reader, question{path: path})
	if found == nil {
		return httpapi.Unavailable("The error group could not be read in time. Send the request again.", time.Second)
	}
	if found.status != http.StatusOK {
		found.copyTo(w)
		return nil
	}
	if err := s.read(r, found); err != nil {
		return err
	}
	body, refused, err := s.find(ctx)
	if err != nil {
		return err
	}
	if refused != nil {
		refused.copyTo(w)
		return nil
	}
	for name, values := range s.limits {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
	return nil
}

// read reads which entries are asked for, of a group that the reader may read.
func (s *entrySelection) read(r *http.Request, found *recorder) error {
	if err := httpapi.OnlyKnown(r, nil, "limit", "cursor"); err != nil {
		return err
	}
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return err
	}
	var body struct {
		Entries entrySearch `json:"entries"`
	}
	if err := json.Unmarshal(found.body.Bytes(), &body); err != nil {
		return fmt.Errorf("cannot read the error group: %w", err)
	}
	s.limits, s.limit, s.search = rateLimits(found), page.Limit, body.Entries
	if page.Cursor != "" && !s.resume(page.Cursor) {
		return httpapi.InvalidCursor(page.Cursor)
	}
	return nil
}

// rateLimits are the headers of a counted request.
func rateLimits(of *recorder) http.Header {
	limits := http.Header{}
	for name, values := range of.header {
		if strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Ratelimit") {
			limits[name] = values
		}
	}
	return limits
}

// copyTo answers as a module has answered.
func (r *recorder) copyTo(w http.ResponseWriter) {
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes())
}

// occurrencesPart is the name of the place of a group's occurrences on its page.
const occurrencesPart = "occurrences"

// occurrencesShown is how many occurrences a page shows.
const occurrencesShown = 50

// occurrencesPart finds the entries of a group with the query of its place, and has grouping show them;
// nil: they were not found in time, or the reader may not see them.
func (g *Gateway) occurrencesPart(r *http.Request, query string) []byte {
	asked, err := url.ParseQuery(query)
	at := pagesWithOccurrences.FindStringSubmatch(r.URL.Path)
	if err != nil || at == nil {
		return nil
	}
	s := &entrySelection{
		gateway: g, reader: r, group: at[1], logs: "/console/logs/entries", sel: "/console/errors/" + at[1] + "/select",
		search: entrySearch{asked.Get("project"), asked.Get("q"), asked.Get("from"), asked.Get("to")},
		limit:  occurrencesShown, most: selectBytes,
	}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" && !s.resume(cursor) {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), pageTime+renderTime)
	defer cancel()
	looking, stop := context.WithTimeout(ctx, pageTime)
	defer stop()
	body, refused, err := s.find(looking)
	if err != nil || refused != nil {
		return nil
	}
	shown := g.askAs(ctx, r, question{path: r.URL.Path, query: r.URL.RawQuery, body: body})
	if shown == nil || shown.status != http.StatusOK {
		return nil
	}
	return shown.body.Bytes()
}

var pagesWithOccurrences = regexp.MustCompile(`^/console/errors/([^/]+)/occurrences$`)

// occurrencesCursor is where a page goes on: the search stays that of the first page. It is not signed,
// as each module decides what the reader may see.
type occurrencesCursor struct {
	Group  string      `json:"group"`
	Search entrySearch `json:"search"`
	Cursor string      `json:"cursor"` // of the log store; empty: it begins
}

// resume goes on at a cursor, if it is one of the group's.
func (s *entrySelection) resume(cursor string) bool {
	var at occurrencesCursor
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || json.Unmarshal(text, &at) != nil || at.Group != s.group {
		return false
	}
	at.Search.Project = s.search.Project // a turn is of a project that the reader may read
	s.search, s.cursor = at.Search, at.Cursor
	return true
}

func (s *entrySelection) nextCursor() *string {
	text, _ := json.Marshal(occurrencesCursor{s.group, s.search, s.cursor}) // texts never fail
	next := base64.RawURLEncoding.EncodeToString(text)
	return &next
}
