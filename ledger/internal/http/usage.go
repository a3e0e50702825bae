package http

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/usage"
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
	Outcome     *string   `json:"outcome,omitempty" enum:"accepted,rejected,rate_limited,quota_exceeded,overloaded,dropped_by_client,dropped_by_rule" description:"Where by names it"`
	Reason      *string   `json:"reason,omitempty" description:"Where by names it: the code of a rejection, the level of a rate limit, the code where it was Weir's fault; invalid_entries without requests: entries of requests of which others were accepted; the kind of a rule, drop or sample"`
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
		query := list.UsageQuery
		next := func(limit int) ([]ledger.Use, bool, error) {
			query.Limit = limit
			found, err := a.Usage.List(r.Context(), list.organization, query)
			if len(found) > 0 {
				query.After = postgres.UsagePlace(found[len(found)-1])
			}
			return found, len(found) == limit, answer(err, list.organization)
		}
		return export[ledger.Use]{
			pages: pagesOf(r, list.Limit-1, next), columns: list.columns(), cells: list.cells,
			body: func(u ledger.Use) any { return list.body(u) },
		}.write(w, mediaType)
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

func refusalOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/refusals",
			Handle: lists(pageOf, func(ctx context.Context, organization string, page page[postgres.RefusalCursor]) ([]usage.ExplainedRefusal, error) {
				return a.Usage.Refusals(ctx, organization, postgres.RefusalQuery{From: page.from, To: page.to, After: page.after, Limit: page.limit + 1})
			}, newRefusalBody, func(r usage.ExplainedRefusal) postgres.RefusalCursor { return postgres.RefusalPlace(r.Refusal) }),
			ID: "listRefusals", Scopes: []string{ScopeRead},
			Summary: "Requests that the quota did not cover, the latest first, and why: how the allowance came to be exhausted, who used " +
				"it, and what would end it",
			Query:  spanQuery{},
			Answer: openapi.Answer{Type: httpapi.List[refusalBody]{}},
		},
	}
}

type refusalBody struct {
	At          time.Time       `json:"at" description:"When the request was refused"`
	RequestID   string          `json:"request_id" description:"That of the answer"`
	Requests    int64           `json:"requests" description:"How many refusals of this key these are: the first is listed by itself, later ones are gathered for ten minutes, and the last of them is described"`
	Project     string          `json:"project" description:"Empty, as key and environment, of more keys than are counted apart"`
	Key         string          `json:"key" description:"The id of the API key"`
	Environment string          `json:"environment" description:"Of the API key"`
	Reason      string          `json:"reason" enum:"exhausted,suspended,project_budget,key_budget" description:"What did not cover it: the quota, or the budget of its project or key"`
	Bytes       int64           `json:"bytes" description:"Of the request: of its entries as they are charged, or where it was not read, as announced"`
	Remaining   int64           `json:"remaining" description:"What was left of the allowance or the budget"`
	Quota       int64           `json:"quota" description:"The allowance of the period then, or the budget"`
	CrossedBy   *crossingBody   `json:"crossed_by" description:"How the allowance came to be exhausted: by the batch that used it up, by the request that needed more than was left, or as the last bytes expired, were voided or adjusted; null for a budget"`
	UsedBy      []shareBody     `json:"used_by" description:"Who had used most of the allowance by then: of projects, keys, environments, hours and adjustments the five largest each. To the instant, and of environments to the end of its hour; by the time of acceptance, so that what is charged later does not count, unless it was accepted before"`
	EndsAt      *time.Time      `json:"ends_at" description:"When the next period begins"`
	EndedBy     *resolutionBody `json:"ended_by" description:"What would have the request accepted before that"`
}

type crossingBody struct {
	At        time.Time `json:"at" description:"When it was accepted or refused, or the bytes went"`
	Batch     string    `json:"batch,omitempty" description:"Of the request that used up the last bytes"`
	RequestID string    `json:"request_id,omitempty" description:"Of the first request that was refused"`
	Reason    string    `json:"reason,omitempty" enum:"expired,voided,adjusted" description:"Why the last bytes went, where no request used them"`
	Grant     string    `json:"grant,omitempty" description:"Whose bytes these were, where they were a grant's"`
	Project   string    `json:"project" description:"Its project; empty where no request used the bytes"`
	Key       string    `json:"key" description:"Its API key; empty where no request used the bytes"`
	Bytes     int64     `json:"bytes" description:"Its bytes"`
}

type shareBody struct {
	By    string `json:"by" enum:"project,key,environment,hour,adjustment"`
	ID    string `json:"id" description:"Of the project, the key or the adjustment, the environment, or when the hour begins"`
	Bytes int64  `json:"bytes" description:"What was charged"`
}

type resolutionBody struct {
	Grant  int64    `json:"grant" description:"The bytes of the least grant; 0: none would"`
	Tiers  []string `json:"tiers" description:"Those whose allowance for the rest of the period covers it, the smallest first"`
	Budget int64    `json:"budget,omitempty" description:"The bytes of the least budget, where it was one that did not cover the request"`
}

// A reason besides those of ingest.
const reasonExhausted = "exhausted"

func newRefusalBody(r usage.ExplainedRefusal) refusalBody {
	body := refusalBody{
		At: r.Cause.At, RequestID: r.Cause.Event, Requests: r.Requests, Project: r.Cause.Project, Key: r.Cause.Key, Environment: r.Environment,
		Reason: r.Reason, Bytes: r.Bytes, Remaining: r.Remaining, Quota: r.Quota, UsedBy: []shareBody{},
	}
	if r.Reason == "" {
		resolution := newResolutionBody(r.Resolution)
		body.Reason, body.EndsAt, body.EndedBy = reasonExhausted, &r.EndsAt, &resolution
	}
	if r.Budget > 0 {
		body.EndsAt, body.EndedBy = &r.EndsAt, &resolutionBody{Tiers: []string{}, Budget: r.Budget}
	}
	if c := r.Crossed; c != nil {
		body.CrossedBy = &crossingBody{
			At: c.At, Batch: c.Batch, RequestID: c.Request, Reason: c.Reason, Grant: c.Grant, Project: c.Project, Key: c.Key, Bytes: c.Bytes,
		}
		for _, share := range c.UsedBy {
			body.UsedBy = append(body.UsedBy, shareBody(share))
		}
	}
	return body
}
