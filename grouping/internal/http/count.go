package http

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

func (a *API) numbersOperations() []openapi.Operation {
	noProject := map[int]string{http.StatusNotFound: "There is no such project in the key's organization"}
	return []openapi.Operation{
		{
			Route: "GET /v1/error-groups/{group}/counts", Handle: a.counts, ID: "countErrorGroup",
			Summary: "How often the errors of a group happened by hour or day, whom they affected, and where they came from",
			Description: "By the entries' timestamps, and of the last 90 days: an error that happened longer before its acceptance is only in the group's count. " +
				"users and tags are those of whole days (UTC).",
			Query: countsQuery{},
			Answer: openapi.Answer{Type: countsBody{}, Description: "The numbers", Texts: []openapi.Text{
				{Media: httpapi.TypeCSV, Description: "A head and a row for each item: at, count"},
			}},
			Problems: map[int]string{http.StatusNotFound: "There is no such group in the key's organization"},
		},
		{
			Route: "GET /v1/projects/{project}/error-settings", Handle: a.settings, ID: "getErrorSettings",
			Summary:  "Where the metadata of a project's entries has the release, service, user and host of an error, and when errors are archived",
			Query:    struct{}{},
			Answer:   openapi.Answer{Type: settingsBody{}, Description: "The settings"},
			Problems: noProject,
		},
		{
			Route: "PUT /v1/projects/{project}/error-settings", Handle: a.setSettings, ID: "setErrorSettings",
			Summary: "Say where the metadata of a project's entries has the release, service, user and host of an error, and when errors are archived",
			Description: "Paths hold for entries that are accepted 5 seconds later or after that. What is left out is found nowhere, and without " +
				"archive_after_days nothing is archived.",
			Headers: idempotent{}, Query: struct{}{},
			Body:   openapi.Body{Type: setSettingsBody{}},
			Answer: openapi.Answer{Type: settingsBody{}, Description: "The settings"},
			Problems: map[int]string{
				http.StatusNotFound: noProject[http.StatusNotFound], http.StatusForbidden: "forbidden: the key does not read the whole organization (access full)",
				http.StatusConflict: "version_conflict: somebody else has changed the settings since if_since",
			},
		},
	}
}

type countsQuery struct {
	From time.Time `query:"from" description:"The hour or day of this time is the first. Default: a day or 30 days before the last"`
	To   time.Time `query:"to" description:"The hour or day before this time is the last. Default: the present one"`
	By   string    `query:"by" enum:"hour,day" default:"day" description:"By what errors are added up, in UTC"`
}

type countsBody struct {
	Items []countBody `json:"items" maxItems:"2161" description:"Every hour or day from from to to, the earliest first"`
	httpapi.OnePage
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Count      int64     `json:"count" description:"The sum of the items"`
	Users      int64     `json:"users" description:"How many users the errors affected, by what the project's error settings say"`
	UsersError float64   `json:"users_error_percent" description:"Standard error of users, in percent: they are estimated by HyperLogLog. Some hundred or fewer are counted exactly"`
	Tags       []tagBody `json:"tags" description:"Tags that an error has had"`
}

type countBody struct {
	At    time.Time `json:"at" description:"When the hour or day begins"`
	Count int64     `json:"count"`
}

type tagBody struct {
	Tag    grouping.Tag `json:"tag" enum:"environment,release,service,host"`
	Values []valueBody  `json:"values" maxItems:"20" description:"The most frequent first. Of each day only the first 20 values are told apart"`
	Others int64        `json:"others" description:"Errors with other values"`
}

type valueBody struct {
	Value string `json:"value" maxLength:"100"`
	Count int64  `json:"count"`
}

func newCountsBody(n postgres.Numbers, span Span) countsBody {
	body := countsBody{Items: []countBody{}, From: span.From, To: span.To, Users: n.Users, UsersError: postgres.UsersError, Tags: []tagBody{}}
	for i, count := range n.Every(span.From, span.To, span.Every) {
		body.Items = append(body.Items, countBody{span.From.Add(time.Duration(i) * span.Every), count})
		body.Count += count
	}
	for i, of := range n.Tags {
		if len(of) == 0 {
			continue
		}
		tag := tagBody{Tag: grouping.Tags[i], Values: []valueBody{}}
		for _, share := range of {
			if share.Name == "" {
				tag.Others = share.N
				continue
			}
			tag.Values = append(tag.Values, valueBody{share.Name, share.N})
		}
		body.Tags = append(body.Tags, tag)
	}
	return body
}

// A Span is what is counted, in whole hours or days.
type Span struct {
	From, To time.Time
	Every    time.Duration
}

// The spans that are shown unless another one is asked for.
const (
	day          = 24 * time.Hour
	defaultHours = 24
	defaultDays  = 30
)

// SpanOf reads what is to be counted, up to now and within the days that are kept.
func SpanOf(r *http.Request, now time.Time) (s Span, err error) {
	values := r.URL.Query()
	if s.From, err = httpapi.QueryTime(values, "from"); err != nil {
		return s, err
	}
	if s.To, err = httpapi.QueryTime(values, "to"); err != nil {
		return s, err
	}
	if err := httpapi.CheckSpan(values, s.From, s.To); err != nil {
		return s, err
	}
	count := defaultDays
	switch by := values.Get("by"); by {
	case "", "day":
		s.Every = day
	case "hour":
		s.Every, count = time.Hour, defaultHours
	default:
		return s, invalid("by", by, "Use hour or day.")
	}
	end := now.UTC().Truncate(s.Every).Add(s.Every)
	if s.To.IsZero() || s.To.After(end) {
		s.To = end
	}
	if whole := s.To.Truncate(s.Every); whole.Before(s.To) {
		s.To = whole.Add(s.Every)
	}
	if s.From.IsZero() {
		s.From = s.To.Add(-time.Duration(count) * s.Every)
	}
	s.From = s.From.Truncate(s.Every)
	if oldest := now.UTC().Truncate(day).AddDate(0, 0, -grouping.DaysKept); s.From.Before(oldest) {
		s.From = oldest
	}
	if s.To.Before(s.From) {
		s.To = s.From
	}
	return s, nil
}

// counts returns the numbers of a group.
func (a *API) counts(w http.ResponseWriter, r *http.Request) error {
	span, err := SpanOf(r, a.Service.Clock())
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "group")
	found, _, err := a.Service.Numbers(r.Context(), identity.FromContext(r.Context()), id, span.From, span.To)
	if err != nil {
		return notFound(err, id)
	}
	body := newCountsBody(found, span)
	if httpapi.Preferred(r, httpapi.TypeJSON, httpapi.TypeCSV) == httpapi.TypeCSV {
		return writeCounts(w, body.Items)
	}
	httpapi.WriteJSON(w, http.StatusOK, body)
	return nil
}

func writeCounts(w http.ResponseWriter, items []countBody) error {
	w.Header().Set("Content-Type", httpapi.TypeCSV)
	rows := [][]string{{"at", "count"}}
	for _, item := range items {
		rows = append(rows, []string{item.At.Format(time.RFC3339), strconv.FormatInt(item.Count, 10)})
	}
	return csv.NewWriter(w).WriteAll(rows)
}

type pathsBody struct {
	Release []string `json:"release,omitempty" maxItems:"3" description:"Paths in the metadata of an entry, of which the first one with a text counts: names with dots between, each a member of the object before, or one with dots in its name. Default: release, version, service.version"`
	Service []string `json:"service,omitempty" maxItems:"3" description:"Default: service, service.name"`
	User    []string `json:"user,omitempty" maxItems:"3" description:"Whom the error affected: a text or a number, of which only a hash is kept. Default: user.id, user"`
	Host    []string `json:"host,omitempty" maxItems:"3" description:"Default: host, host.name"`
}

type setSettingsBody struct {
	pathsBody
	ArchiveAfterDays int        `json:"archive_after_days,omitempty" minimum:"0" maximum:"365" description:"Unresolved groups without an error for so many days are archived, until one comes. 0 or left out: never"`
	IfSince          *time.Time `json:"if_since,omitempty" description:"Refuse with version_conflict unless the present settings are those from this time on"`
}

type settingsBody struct {
	pathsBody
	ArchiveAfterDays int        `json:"archive_after_days" minimum:"0" maximum:"365" description:"Unresolved groups without an error for so many days are archived; 0: none is"`
	Since            *time.Time `json:"since" description:"For entries accepted from this time on; null: these are the defaults"`
	Actor            *string    `json:"actor" description:"Id of the member or API key that set them"`
}

func newSettingsBody(s postgres.Setting) settingsBody {
	body := settingsBody{pathsBody: pathsBody(s.Paths), ArchiveAfterDays: s.ArchiveDays, Actor: orNull(s.By)}
	if since := s.Since.UTC(); !since.IsZero() {
		body.Since = &since
	}
	return body
}

func (a *API) settings(w http.ResponseWriter, r *http.Request) error {
	project := chi.URLParam(r, "project")
	if !a.mayRead(r, project) {
		return httpapi.NotFound("project", project)
	}
	set, err := a.Service.Setting(r.Context(), identity.FromContext(r.Context()).Organization, project)
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusOK, newSettingsBody(set))
	return nil
}

func (a *API) setSettings(w http.ResponseWriter, r *http.Request) error {
	request, err := requestOf(r)
	if err != nil {
		return err
	}
	project := chi.URLParam(r, "project")
	if !a.mayRead(r, project) {
		return httpapi.NotFound("project", project)
	}
	var body setSettingsBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	to := postgres.Setting{Paths: grouping.Paths(body.pathsBody), ArchiveDays: body.ArchiveAfterDays}
	set, err := a.Service.Set(r.Context(), request, project, to, body.IfSince)
	if err != nil {
		return Refusal(err)
	}
	httpapi.WriteJSON(w, http.StatusOK, newSettingsBody(set))
	return nil
}
