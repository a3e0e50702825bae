package http

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/internal/query"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func countOperations(a *access, of *groups.Groups) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/error-groups/{group}/counts", Handle: a.reads(counting(of)), ID: "countErrorGroup",
			Summary: "How often the errors of a group happened by hour or day, whom they affected, and where they came from",
			Description: "By the entries' timestamps, and of the last 90 days: an error that happened longer before its acceptance is only in the group's count. " +
				"users and tags are those of whole days (UTC).",
			Query: countsQuery{},
			Answer: openapi.Answer{Type: countsBody{}, Description: "The numbers", Texts: []openapi.Text{
				{Media: httpapi.TypeCSV, Description: "A head and a row for each item: at, count"},
			}},
			Problems: map[int]string{http.StatusNotFound: "There is no such group in the key's organization"},
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

func newCountsBody(n postgres.Numbers, s span) countsBody {
	body := countsBody{Items: []countBody{}, From: s.From, To: s.To, Users: n.Users, UsersError: postgres.UsersError, Tags: []tagBody{}}
	for i, count := range n.Every(s.From, s.To, s.Every) {
		body.Items = append(body.Items, countBody{s.From.Add(time.Duration(i) * s.Every), count})
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

// A span is what is counted, in whole hours or days.
type span struct {
	From, To time.Time
	Every    time.Duration
}

// The spans that are shown unless another one is asked for.
const (
	day          = 24 * time.Hour
	defaultHours = 24
	defaultDays  = 30
)

// spanOf reads what is to be counted, up to now and within the days that are kept.
func spanOf(r *http.Request, now time.Time) (s span, err error) {
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
		return s, query.Invalid("by", by, "Use hour or day.")
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

// counting returns the numbers of a group.
func counting(of *groups.Groups) handler {
	return func(c *call) (any, error) {
		span, err := spanOf(c.r, of.Now())
		if err != nil {
			return nil, err
		}
		found, err := of.Count(c.ctx(), c.who, c.param("group"), span.From, span.To)
		if err != nil {
			return nil, err
		}
		body := newCountsBody(found.Numbers, span)
		if httpapi.Preferred(c.r, httpapi.TypeJSON, httpapi.TypeCSV) == httpapi.TypeCSV {
			return nil, writeCounts(c.w, body.Items)
		}
		return body, nil
	}
}

func writeCounts(w http.ResponseWriter, items []countBody) error {
	w.Header().Set("Content-Type", httpapi.TypeCSV)
	rows := [][]string{{"at", "count"}}
	for _, item := range items {
		rows = append(rows, []string{item.At.Format(time.RFC3339), strconv.FormatInt(item.Count, 10)})
	}
	return csv.NewWriter(w).WriteAll(rows)
}
