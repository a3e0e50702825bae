package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/usage"
	"github.com/weirlog/weir/shared/httpapi"
)

type refusalBody struct {
	At          time.Time     `json:"at"`
	RequestID   string        `json:"request_id"`
	Requests    int64         `json:"requests"`
	Project     string        `json:"project"`
	Key         string        `json:"key"`
	Environment string        `json:"environment"`
	Reason      string        `json:"reason"`
	Bytes       int64         `json:"bytes"`
	Remaining   int64         `json:"remaining"`
	Quota       int64         `json:"quota"`
	CrossedBy   *crossingBody `json:"crossed_by"`
	UsedBy      []shareBody   `json:"used_by"`
	EndsAt      *time.Time    `json:"ends_at"`
	EndedBy     *remedyBody   `json:"ended_by"`
}

type crossingBody struct {
	At        time.Time `json:"at"`
	Batch     string    `json:"batch,omitempty"`
	RequestID string    `json:"request_id,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Grant     string    `json:"grant,omitempty"`
	Project   string    `json:"project"`
	Key       string    `json:"key"`
	Bytes     int64     `json:"bytes"`
}

type shareBody struct {
	By    string `json:"by"`
	ID    string `json:"id"`
	Bytes int64  `json:"bytes"`
}

type remedyBody struct {
	Grant  int64    `json:"grant"` // 0: no grant ends it
	Tiers  []string `json:"tiers"`
	Budget int64    `json:"budget,omitempty"` // 0: no budget refused it
}

// A reason besides those of ingest.
const reasonExhausted = "exhausted"

func newRefusalBody(r usage.ExplainedRefusal) refusalBody {
	body := refusalBody{
		At: r.Cause.At, RequestID: r.Cause.Event, Requests: r.Requests, Project: r.Cause.Project, Key: r.Cause.Key, Environment: r.Environment,
		Reason: r.Reason, Bytes: r.Bytes, Remaining: r.Remaining, Quota: r.Quota, UsedBy: []shareBody{},
	}
	if r.Reason == "" {
		remedy := newRemedyBody(r.Remedy)
		body.Reason, body.EndsAt, body.EndedBy = reasonExhausted, &r.EndsAt, &remedy
	}
	if r.Budget > 0 {
		body.EndsAt, body.EndedBy = &r.EndsAt, &remedyBody{Tiers: []string{}, Budget: r.Budget}
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
	organization, err := reached(r)
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
