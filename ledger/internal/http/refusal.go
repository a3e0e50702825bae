package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/usage"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func refusalOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/refusals", Handle: a.refusals, ID: "listRefusals", Scopes: []string{ScopeRead},
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

// refusals lists requests that the quota refused, the latest first, with reasons.
func (a *API) refusals(w http.ResponseWriter, r *http.Request) error {
	page, err := pageOf[postgres.RefusalCursor](r)
	if err != nil {
		return err
	}
	organization, err := organizationFromPath(r)
	if err != nil {
		return err
	}
	found, err := a.Usage.Refusals(r.Context(), organization,
		postgres.RefusalQuery{From: page.from, To: page.to, After: page.after, Limit: page.limit + 1})
	if err != nil {
		return answer(err, organization)
	}
	place := func(r usage.ExplainedRefusal) postgres.RefusalCursor { return postgres.RefusalPlace(r.Refusal) }
	httpapi.WriteList(w, r, found, page.limit, newRefusalBody, place)
	return nil
}
