package http

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type usageQuery struct {
	Project string `query:"project" description:"Only this project"`
	By      string `query:"by" description:"What usage is split by, beside time: any of project, key, environment, outcome and reason, with commas between. By neither outcome nor reason, only what was accepted, and so charged, is counted. Default: project where bucket is absent too, else nothing"`
	Bucket  string `query:"bucket" enum:"hour,day,month" default:"day" description:"By which level of time usage is added up, in UTC. Usage by hour is kept for a shorter time. Each bucket counts of which any moment lies between from and to"`
	spanQuery
}

func usageOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/usage", Handle: a.usage, ID: "listUsage", Scopes: []string{ScopeRead},
			Summary: "What became of requests by time, the latest first; where by and bucket are absent, what was charged per UTC day and " +
				"project",
			Query: usageQuery{},
			Answer: openapi.Answer{Type: httpapi.List[usageBody]{}, Texts: []openapi.Text{
				{Media: httpapi.TypeLines, Description: "All that matches, or limit items of it: a LedgerUsage on each line"},
				{Media: httpapi.TypeCSV, Description: "The same with a head and a row for each item: at, what it is split by, requests, entries, bytes, errors, " +
					"key_in_body"},
			}},
		},
	}
}

type usageBody struct {
	At          time.Time `json:"at" description:"When the bucket begins"`
	Day         string    `json:"day,omitempty" format:"date" description:"The same, where the bucket is a day"`
	Project     *string   `json:"project,omitempty" description:"Where by names it; empty: of any, where too many keys were in use at once"`
	Key         *string   `json:"key,omitempty" description:"The id of the API key, where by names it; empty as for project, and for usage from before keys were counted apart"`
	Environment *string   `json:"environment,omitempty" description:"Of the API key, where by names it; empty as for key"`
	Outcome     *string   `json:"outcome,omitempty" enum:"accepted,rejected,rate_limited,quota_exceeded,overloaded" description:"Where by names it"`
	Reason      *string   `json:"reason,omitempty" description:"Where by names it: the code of a rejection, the level of a rate limit, the code where it was Weir's fault; invalid_entries without requests: entries of requests of which others were accepted"`
	Requests    int64     `json:"requests" description:"Requests. Those that are not accepted are counted exactly but for what a process of ingest that died had not published"`
	Entries     int64     `json:"entries" description:"Entries, as far as they were read"`
	Bytes       int64     `json:"bytes" description:"Bytes of entries as they are charged; of what was not read as entries those that came or were announced"`
	Errors      int64     `json:"errors" description:"Entries that carried an error payload, of accepted ones"`
	KeyInBody   int64     `json:"key_in_body" description:"Requests with the API key in the body, which is deprecated"`
}

// A usageList is the requested usage.
type usageList struct {
	postgres.UsageQuery
	organization string
}

// body has the dimensions of the list, even if empty, and no others.
func (l usageList) body(u ledger.Use) usageBody {
	body := usageBody{At: u.Hour, Requests: u.Requests, Entries: u.Entries, Bytes: u.Bytes, Errors: u.Errors, KeyInBody: u.KeyInBody}
	if l.Bucket == postgres.ByDay {
		body.Day = u.Hour.Format(time.DateOnly)
	}
	values := []*string{&u.Project, &u.Key, &u.Environment, &u.Outcome, &u.Reason}
	for i, member := range []**string{&body.Project, &body.Key, &body.Environment, &body.Outcome, &body.Reason} {
		if l.By[postgres.Dimensions()[i]] {
			*member = values[i]
		}
	}
	return body
}

func (l usageList) columns() []string {
	columns := []string{"at"}
	for _, dimension := range postgres.Dimensions() {
		if l.By[dimension] {
			columns = append(columns, string(dimension))
		}
	}
	return append(columns, "requests", "entries", "bytes", "errors", "key_in_body")
}

func (l usageList) cells(u ledger.Use) []string {
	cells := []string{u.Hour.Format(time.RFC3339)}
	for i, value := range []string{u.Project, u.Key, u.Environment, u.Outcome, u.Reason} {
		if l.By[postgres.Dimensions()[i]] {
			cells = append(cells, value)
		}
	}
	for _, n := range []int64{u.Requests, u.Entries, u.Bytes, u.Errors, u.KeyInBody} {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	return cells
}

// usage lists requests by the requested dimensions, the latest first;
// by default accepted ones by day and project.
func (a *API) usage(w http.ResponseWriter, r *http.Request) error {
	list, err := usageListOf(r)
	if err != nil {
		return err
	}
	if mediaType := httpapi.Preferred(r, httpapi.TypeJSON, httpapi.TypeLines, httpapi.TypeCSV); mediaType != httpapi.TypeJSON {
		return a.exportUsage(w, r, list, mediaType)
	}
	found, err := a.Usage.List(r.Context(), list.organization, list.UsageQuery)
	if err != nil {
		return answer(err, list.organization)
	}
	httpapi.WriteList(w, r, found, list.Limit-1, list.body, postgres.UsagePlace)
	return nil
}

// usageListOf parses a request. It queries one item more than fits,
// which shows whether the list continues.
func usageListOf(r *http.Request) (list usageList, err error) {
	page, err := pageOf[postgres.UsageCursor](r)
	if err != nil {
		return list, err
	}
	query := r.URL.Query()
	list.UsageQuery = postgres.UsageQuery{
		Bucket: postgres.ByDay, By: map[postgres.Dimension]bool{}, Project: query.Get("project"),
		From: page.from, To: page.to, After: page.after, Limit: page.limit + 1,
	}
	if query.Has("bucket") {
		list.Bucket = postgres.Bucket(query.Get("bucket"))
	}
	if !slices.Contains([]postgres.Bucket{postgres.ByHour, postgres.ByDay, postgres.ByMonth}, list.Bucket) {
		return list, httpapi.Invalid("?bucket", httpapi.CodeInvalidRequest, "There is no such bucket of time.", "Use hour, day or month.")
	}
	names := query.Get("by")
	if !query.Has("by") && !query.Has("bucket") {
		names = string(postgres.ByProject)
	}
	for name := range strings.SplitSeq(names, ",") {
		if name != "" && !slices.Contains(postgres.Dimensions(), postgres.Dimension(name)) {
			return list, httpapi.Invalid("?by", httpapi.CodeInvalidRequest, "Usage can't be split by that.",
				"Use any of project, key, environment, outcome and reason, with commas between.")
		}
		list.By[postgres.Dimension(name)] = true
	}
	list.organization, err = organizationFromPath(r)
	return list, err
}

// exportUsage answers with the whole list, up to its limit.
func (a *API) exportUsage(w http.ResponseWriter, r *http.Request, list usageList, mediaType string) error {
	left := -1
	if r.URL.Query().Has("limit") {
		left = list.Limit - 1
	}
	return export[ledger.Use]{
		pages: a.usagePages(r.Context(), list, left), columns: list.columns(), cells: list.cells,
		body: func(u ledger.Use) any { return list.body(u) },
	}.write(w, mediaType)
}

// usagePages yields the pages of a list, each read at its own instant;
// left bounds the items unless negative.
func (a *API) usagePages(ctx context.Context, list usageList, left int) iter.Seq2[[]ledger.Use, error] {
	query := list.UsageQuery
	query.Limit = httpapi.MaxLimit
	if left >= 0 {
		query.Limit = left
	}
	return func(yield func([]ledger.Use, error) bool) {
		for {
			found, err := a.Usage.List(ctx, list.organization, query)
			if err != nil {
				yield(nil, answer(err, list.organization))
				return
			}
			if !yield(found, nil) || len(found) < query.Limit || left >= 0 {
				return
			}
			query.After = postgres.UsagePlace(found[len(found)-1])
		}
	}
}
