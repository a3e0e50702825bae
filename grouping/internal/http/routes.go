package http

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

// An API serves API keys.
type API struct {
	Service  *groups.Service
	Guard    *identity.Guard
	Projects *identity.Directory
}

// Mount adds the routes.
func (a *API) Mount(router chi.Router) {
	httpapi.Describe(router, module.Name, OpenAPI())
	for _, operation := range a.operations() {
		operation.Mount(router.With(a.Guard.RequireAPIKey()))
	}
}

var module = openapi.Module{
	Name: "grouping", Tag: "grouping", Description: "Which of the errors in the logs are the same", Credential: openapi.APIKey,
	Problem: problemBody{},
	Problems: map[int]string{
		http.StatusBadRequest:          "A parameter is wrong; the answer names it",
		http.StatusUnauthorized:        "The API key is missing or not valid",
		http.StatusForbidden:           "forbidden: the key may only send logs (access write)",
		http.StatusTooManyRequests:     "rate_limited: the organization, the project or the credential asks too often. Wait for Retry-After",
		http.StatusInternalServerError: "The request failed by no fault of the client",
	},
}

// OpenAPI describes the routes.
func OpenAPI() []byte { return module.Document(new(API).operations()) }

func (a *API) operations() []openapi.Operation {
	noGroup := map[int]string{http.StatusNotFound: "There is no such group in the key's organization"}
	operations := slices.Concat(a.decisionOperations(), a.mergeOperations(), a.mapOperations(), a.numbersOperations(), a.ruleOperations(), a.alertOperations(),
		a.ownerOperations(), a.linkOperations())
	return append(operations, []openapi.Operation{
		{
			Route: "GET /v1/projects/{project}/error-groups", Handle: a.groups, ID: "listErrorGroups",
			Summary: "The error groups of a project, the one last seen first",
			Query:   groupsQuery{},
			Answer: openapi.Answer{
				Type: errorGroupListBody{}, Description: "A page of groups. It may end before its limit: its groups hold at most 1 MiB of text",
			},
			Problems: map[int]string{http.StatusNotFound: "There is no such project in the key's organization"},
		},
		{
			Route: "GET /v1/error-groups/{group}", Handle: a.group, ID: "getErrorGroup",
			Summary:     "An error group, some of its occurrences, and how it came to be one",
			Description: "The id of a group that was merged into another stands for that one, here and where a group is decided about.",
			Query:       struct{}{},
			Answer:      openapi.Answer{Type: errorGroupDetailBody{}, Description: "The group"},
			Problems:    noGroup,
		},
		{
			Route: "GET /v1/error-groups/{group}/similar", Handle: a.similar, ID: "listSimilarErrorGroups",
			Summary:  "Error groups of the project that may be about the same thing, the most alike first, and how their calls differ",
			Query:    struct{}{},
			Answer:   openapi.Answer{Type: similarErrorGroupListBody{}, Description: "The most similar groups, at most 5, each with a similarity of 0.4 or more"},
			Problems: noGroup,
		},
	}...)
}

// mayRead reports whether the caller may read the project: one of
// its organization, or only the key's own if it is bound to one.
// The key's own project counts before its creation is consumed.
func (a *API) mayRead(r *http.Request, project string) bool {
	principal := identity.FromContext(r.Context())
	return principal.ReadsProject(project) && (a.Projects.Owns(principal.Organization, project) || project != "" && project == principal.Project)
}

// notFound maps missing and foreign groups to 404.
func notFound(err error, id string) error {
	if errors.Is(err, postgres.ErrNoGroup) {
		return httpapi.NotFound("error group", id)
	}
	return err
}

type errorGroupBody struct {
	ID           string          `json:"id" maxLength:"64"`
	Project      string          `json:"project" maxLength:"64"`
	Title        string          `json:"title" description:"Type and message of the first occurrence, on one line; its first 200 bytes"`
	Type         string          `json:"type" description:"Type of the error as sent, its first 200 bytes; empty when none was"`
	Culprit      string          `json:"culprit" description:"The innermost frame of the sender's own code, its first 200 bytes; empty without a usable stack trace"`
	Status       grouping.Status `json:"status" enum:"unresolved,resolved,ignored,archived" description:"Weir itself archives what has not happened for as many days as the project's error settings say, and opens it again when it does"`
	Count        int64           `json:"count" minimum:"1" description:"How many accepted entries carried this error; exact"`
	FirstSeen    time.Time       `json:"first_seen" description:"Earliest timestamp of an entry of the group"`
	LastSeen     time.Time       `json:"last_seen" description:"Latest timestamp of an entry of the group"`
	Levels       []string        `json:"levels" enum:"debug,info,warn,error,fatal"`
	Environments []string        `json:"environments"`
	FirstRelease *string         `json:"first_release" description:"Release of the earliest error that named one, in release or version of its metadata; null: none did"`
	LastRelease  *string         `json:"last_release"`

	Merged       int        `json:"merged" minimum:"0" maximum:"1000" description:"How many groups were merged into it: count, times, levels, environments and releases are those of all together"`
	Version      int64      `json:"version" description:"How many decisions there are about the group"`
	Since        *time.Time `json:"since" description:"Since when it has its status; null: since it was first seen"`
	Regressed    bool       `json:"regressed" description:"It was resolved, and an error came again; until somebody decides about its status"`
	InRelease    *string    `json:"in_release" description:"The release from which on it is resolved; next is the one after those that were known then. null: in no certain one"`
	Until        *untilBody `json:"until" description:"When it is no longer ignored; null: never, or it is not"`
	Assignee     *string    `json:"assignee" description:"Who looks after it: the id of a member, or a label; null: nobody"`
	AssigneeName *string    `json:"assignee_name" description:"Of the member, where it was known; else null"`

	Spike *spikeBody `json:"spike" description:"The last hour in which far more errors came than before; null: none"`
}

type spikeBody struct {
	Hour     time.Time `json:"hour" description:"When it begins"`
	Count    int64     `json:"count" description:"How many errors it had when this was noticed"`
	Expected float64   `json:"expected" description:"How many were usual: an hour of the day before, or this one in the week before"`
}

// orNull is nil for an empty text.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func newErrorGroupBody(g postgres.Group) errorGroupBody {
	body := errorGroupBody{
		ID: g.ID, Project: g.Project, Title: g.Title, Type: g.Type, Culprit: g.Culprit, Status: g.Status, Count: g.Count,
		FirstSeen: g.FirstSeen.UTC(), LastSeen: g.LastSeen.UTC(), Levels: g.Severities.Names(), Environments: g.Environments,
		FirstRelease: orNull(g.FirstRelease), LastRelease: orNull(g.LastRelease), Merged: g.Members, Version: g.Version, Regressed: g.State.Regressed,
		InRelease: orNull(inRelease(g.State.Resolution)), Until: newUntilBody(g.State.Until), Assignee: orNull(g.State.Assignee.ID),
		AssigneeName: orNull(g.State.Assignee.Name),
	}
	if since := g.State.Since.UTC(); !since.IsZero() {
		body.Since = &since
	}
	if spike := g.State.Spike; !spike.Hour.IsZero() {
		body.Spike = &spikeBody{spike.Hour.UTC(), spike.Count, spike.Expected}
	}
	return body
}

type errorGroupDetailBody struct {
	errorGroupBody
	Members     []memberBody         `json:"members" maxItems:"100" description:"The groups that were merged into it, the most frequent first"`
	Occurrences []occurrenceBody     `json:"occurrences" maxItems:"25" description:"Samples: the first 5 and the newest 20 as they came, by time, the newest first; of many at once only some. Of merged groups the newest of all"`
	Why         postgres.Explanation `json:"why"`
	Similar     []string             `json:"similar" description:"Groups of the project that may be about the same thing"`
}

// groupsQuery are the filters of a list, and its page.
type groupsQuery struct {
	groupFilters
	Sort string `query:"sort" enum:"last_seen,first_seen,count,users" default:"last_seen" description:"The highest or newest first. By first_seen and count 200,000 groups that match are sorted, those last seen; by users, of the last 7 days, 2,000"`
	httpapi.Page
}

// groupFilters choose groups.
type groupFilters struct {
	Status       string    `query:"status" enum:"unresolved,resolved,ignored,archived" description:"Groups with this status"`
	From         time.Time `query:"from" description:"Groups last seen at or after this time, by the entries' timestamps"`
	To           time.Time `query:"to" description:"Groups first seen before this time, by the entries' timestamps"`
	Levels       []string  `query:"level" enum:"debug,info,warn,error,fatal" description:"Groups with entries of one of these levels"`
	Environments []string  `query:"environment" description:"Groups with entries of one of these environments"`
	Words        string    `query:"q" maxLength:"256" description:"Words that all occur in title, type or culprit, whatever their case"`
	NewSince     string    `query:"new_since" enum:"deploy" description:"deploy: groups that were first seen in the release that came last, or after it had come, in one of the environments that are asked for. A release comes with its first error"`
	Assignee     string    `query:"assignee" maxLength:"100" description:"Groups that this member, by id, or this label looks after"`
}

// groups lists a project's groups, last seen first.
func (a *API) groups(w http.ResponseWriter, r *http.Request) error {
	project := chi.URLParam(r, "project")
	if !a.mayRead(r, project) {
		return httpapi.NotFound("project", project)
	}
	query, err := ParseQuery(r)
	if err != nil {
		return err
	}
	query.Project = project
	page, err := a.Service.Groups(r.Context(), identity.FromContext(r.Context()).Organization, query)
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusOK, newErrorGroupListBody(r, page))
	return nil
}

// errorGroupListBody is a page of groups. It may
// end before its limit: its text is bounded.
type errorGroupListBody struct {
	httpapi.List[listedGroupBody]
	Incomplete bool `json:"incomplete,omitempty" description:"true where the search timed out before the page was full: these are the groups found so far, none perhaps, and next_cursor goes on from there. Else absent"`
}

// listedGroupBody is a group of a list.
type listedGroupBody struct {
	errorGroupBody
	Recent recentBody `json:"recent" description:"What happened of late, by the entries' timestamps"`
}

type recentBody struct {
	From   time.Time `json:"from" description:"When the first of hours begins"`
	Hours  []int64   `json:"hours" minItems:"24" maxItems:"24" description:"Errors in each of the last 24 hours, the present one last"`
	Before int64     `json:"before" description:"Errors in the 24 hours before these"`
	Users  int64     `json:"users" description:"How many users were affected in the last 7 days; an estimate, as in the counts of the group"`
}

func newErrorGroupListBody(r *http.Request, page postgres.Page) errorGroupListBody {
	body := errorGroupListBody{httpapi.List[listedGroupBody]{Items: make([]listedGroupBody, len(page.Groups))}, page.Incomplete}
	for i, g := range page.Groups {
		recent := page.Recent[g.ID]
		body.Items[i] = listedGroupBody{newErrorGroupBody(g), recentBody{recent.From, recent.Hours[:], recent.Before, recent.Users}}
	}
	if page.Next != nil {
		next := httpapi.EncodeCursor(r, page.Next)
		body.NextCursor = &next
	}
	return body
}

// group returns a group, some occurrences and its reason.
func (a *API) group(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "group")
	found, err := a.Service.Group(r.Context(), identity.FromContext(r.Context()), id)
	if err != nil {
		return notFound(err, id)
	}
	similar := make([]string, len(found.Similar))
	for i, s := range found.Similar {
		similar[i] = s.Group.ID
	}
	httpapi.WriteJSON(w, http.StatusOK, errorGroupDetailBody{
		newErrorGroupBody(found.Group), newMemberBodies(found.Members), newOccurrenceBodies(found.Occurrences), found.Why, similar,
	})
	return nil
}

type occurrenceBody struct {
	EntryID     string          `json:"entry_id" description:"Id of the log entry, as GET /v1/logs shows it; the entry there is whole"`
	Time        time.Time       `json:"time"`
	Level       string          `json:"level" enum:"debug,info,warn,error,fatal"`
	Environment string          `json:"environment"`
	Message     string          `json:"message" description:"Message of the log entry; its first 1,000 bytes, ending in … where it is longer"`
	Exceptions  []exceptionBody `json:"exceptions" maxItems:"10" description:"The chain of errors, the root cause first; at most 10"`
	Frames      []frameBody     `json:"frames" description:"The calls as parsed: of the root cause first, the innermost call first; at most 50 of each error and 12 KB of names in all, each name of at most 300 bytes"`

	MoreExceptions int `json:"more_exceptions,omitempty" minimum:"1" description:"How many errors of the chain are not shown; absent where all are"`
}

// exceptionBody is one error of the chain. The root cause is 0.
type exceptionBody struct {
	Type    string `json:"type" description:"Its first 300 bytes, ending in … where it is longer"`
	Message string `json:"message" description:"Its first 1,000 bytes, ending in … where it is longer"`

	MoreFrames int `json:"more_frames,omitempty" minimum:"1" description:"How many frames of the error are not shown; absent where all are"`
}

type frameBody struct {
	Exception int    `json:"exception" description:"Index in exceptions"`
	Module    string `json:"module"`
	Function  string `json:"function"`
	File      string `json:"file"`
	Line      int    `json:"line" description:"From 1; 0 is unknown"`
	Column    int    `json:"column" description:"From 1; 0 is unknown"`
	InApp     bool   `json:"in_app" description:"The sender's own code rather than a library's"`

	Printed *printedBody `json:"printed,omitempty" description:"The call of the built script as it was printed, where a source map says where it was written; else absent"`

	Unmapped trace.Unmapped `json:"unmapped,omitempty" enum:"no_build,no_map,no_column,no_position" description:"Why no source map was applied, in a project that has some: the error names neither a release nor a debug id, there was no map of the script, the call has no column, or the map has nothing there; absent otherwise"`

	Library trace.Reason `json:"library,omitempty" enum:"path,known,learned,rule" description:"Why it is a library's: its file lies where libraries are installed, its name is that of a known library or of the runtime, few errors of the project go through its package, or a rule says so, or that the call does not count; absent for own code"`

	Rule string `json:"rule,omitempty" description:"The rule of the project that says whether it is own code, as it was then; absent where none does"`
}

// printedBody is a call of a built script as it was printed.
type printedBody struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
}

func newFrameBody(exception int, f postgres.Frame) frameBody {
	body := frameBody{
		Exception: exception, Module: f.Module, Function: f.Function, File: f.File, Line: f.Line, Column: f.Column, InApp: f.InApp, Library: f.Library, Rule: f.Rule,
	}
	if p := f.Printed; p != nil {
		if body.Unmapped = p.Unmapped; p.Unmapped == "" {
			body.Printed = &printedBody{p.Function, p.File, p.Line, p.Column}
		}
	}
	return body
}

func newOccurrenceBodies(occurrences []postgres.Occurrence) []occurrenceBody {
	bodies := make([]occurrenceBody, len(occurrences))
	for i, o := range occurrences {
		bodies[i] = occurrenceBody{
			EntryID: o.Entry, Time: o.At.UTC(), Environment: o.Environment, Message: o.Message,
			Exceptions: []exceptionBody{}, Frames: []frameBody{},
		}
		if words := o.Severity.Names(); len(words) > 0 {
			bodies[i].Level = words[0]
		}
		for number, x := range o.Exceptions {
			bodies[i].Exceptions = append(bodies[i].Exceptions, exceptionBody{x.Type, x.Message, x.MoreFrames})
			bodies[i].MoreExceptions += x.MoreExceptions
			for _, f := range x.Frames {
				bodies[i].Frames = append(bodies[i].Frames, newFrameBody(number, f))
			}
		}
	}
	return bodies
}

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
	for _, parse := range []func(*postgres.GroupQuery, url.Values) error{
		parseStatus, parseSpan, parseLevels, parseEnvironments, parseWords, parseAssignee, parseNewSince, parseSort,
	} {
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
		return invalid("status", word, "Use unresolved, resolved, ignored or archived.")
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

func parseAssignee(q *postgres.GroupQuery, values url.Values) error {
	if q.Assignee = values.Get("assignee"); !searchable(q.Assignee) {
		return invalid("assignee", q.Assignee, fmt.Sprintf("Use at most %d bytes of UTF-8 without U+0000.", maxValue))
	}
	return nil
}

func parseNewSince(q *postgres.GroupQuery, values url.Values) error {
	word := values.Get("new_since")
	if q.NewSince = word == "deploy"; word != "" && !q.NewSince {
		return invalid("new_since", word, "Use deploy.")
	}
	return nil
}

func parseSort(q *postgres.GroupQuery, values url.Values) error {
	switch by := postgres.Sorting(values.Get("sort")); by {
	case "", "last_seen":
	case postgres.ByFirstSeen, postgres.ByCount, postgres.ByUsers:
		q.Sort = by
	default:
		return invalid("sort", string(by), "Use last_seen, first_seen, count or users.")
	}
	return nil
}

// searchable reports whether Postgres can search for s.
func searchable(s string) bool {
	return len(s) <= maxValue && strings.ToValidUTF8(s, "") == s && strings.IndexByte(s, 0) < 0
}

func invalid(name, value, fix string) error {
	return httpapi.Invalid("?"+name, httpapi.CodeInvalidRequest, fmt.Sprintf("%s is %q.", name, value), fix)
}

// similarErrorGroupBody is a group that may be about
// the same fault as the requested one.
type similarErrorGroupBody struct {
	errorGroupBody
	Similarity float64  `json:"similarity" minimum:"0.4" maximum:"1" description:"How much alike the first samples of the two are"`
	OnlyHere   []string `json:"only_here" maxItems:"10" description:"Calls of the group in the path that this one lacks, the innermost first"`
	OnlyThere  []string `json:"only_there" maxItems:"10" description:"Calls of this one that the group in the path lacks"`
}

func newSimilarErrorGroupBody(s groups.Similar) similarErrorGroupBody {
	const decimals = 1000
	return similarErrorGroupBody{
		errorGroupBody: newErrorGroupBody(s.Group), Similarity: math.Round(s.Similarity*decimals) / decimals,
		OnlyHere: append([]string{}, s.OnlyHere...), OnlyThere: append([]string{}, s.OnlyThere...),
	}
}

// similarErrorGroupListBody is all groups that are alike.
type similarErrorGroupListBody struct {
	Items []similarErrorGroupBody `json:"items" maxItems:"20"`
	httpapi.OnePage
}

// similar lists the groups most like one, the
// most alike first, and how their calls differ.
func (a *API) similar(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "group")
	found, err := a.Service.Similar(r.Context(), identity.FromContext(r.Context()), id)
	if err != nil {
		return notFound(err, id)
	}
	body := similarErrorGroupListBody{Items: make([]similarErrorGroupBody, len(found))}
	for i, s := range found {
		body.Items[i] = newSimilarErrorGroupBody(s)
	}
	httpapi.WriteJSON(w, http.StatusOK, body)
	return nil
}
