package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/forecasts"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func dryRunOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/organizations/{organization}/dry-run", Handle: a.dryRun, ID: "dryRun", Scopes: []string{ScopeRead},
			Summary:     "What would become of a request",
			Description: "Changes nothing. What a replica of ingest decides may differ by what was accepted since as_of.",
			Body:        openapi.Body{Type: tryBody{}},
			Answer:      openapi.Answer{Type: dryRunBody{}},
		},
	}
}

// tryBody is a possible request: its bytes and its spenders.
type tryBody struct {
	Bytes   int64  `json:"bytes" required:"true" minimum:"1" description:"What it would be charged"`
	Project string `json:"project" maxLength:"64" description:"Whose budget it would use. Left out, like key: no budget is looked at"`
	Key     string `json:"key" maxLength:"64" description:"The id of the API key whose budget it would use"`
}

type dryRunBody struct {
	Organization string          `json:"organization"`
	Bytes        int64           `json:"bytes"`
	Accepted     bool            `json:"accepted"`
	Code         string          `json:"code,omitempty" enum:"quota_exceeded" description:"Of the answer that the request would get; left out: it would be accepted"`
	Rule         *string         `json:"rule" enum:"suspended,exhausted,quota,budget" description:"By which it would be refused. exhausted: an earlier request needed more than was left, and everything is refused since; budget: that of its project or key does not cover it; null: it would be accepted"`
	Covered      int64           `json:"covered" description:"Of its bytes, by the allowance and grants"`
	Overage      int64           `json:"overage" description:"Of its bytes, by nothing"`
	Remaining    int64           `json:"remaining" description:"Of the allowance and grants, afterwards"`
	Exhausts     bool            `json:"exhausts" description:"Nothing more would be accepted afterwards"`
	EndsAt       time.Time       `json:"ends_at" description:"When the period ends"`
	EndedBy      *resolutionBody `json:"ended_by" description:"What would have it accepted before the period ends; null where it would be, the organization is suspended, or a budget refuses it"`
	Budget       *budgetBody     `json:"budget" description:"That would refuse it, where the rule is budget"`
	AsOf         asOfBody        `json:"as_of"`
}

// codeQuotaExceeded is the code with which ingest refuses a request,
// whatever the rule.
const codeQuotaExceeded = "quota_exceeded"

func newDryRunBody(t forecasts.DryRun) dryRunBody {
	b := t.Balance
	body := dryRunBody{
		Organization: b.Organization.ID, Bytes: t.Bytes, Accepted: t.Rule == "", Covered: t.Covered, Overage: t.Overage, Remaining: t.Remaining,
		Exhausts: t.Exhausts, EndsAt: b.Book.Period.End, AsOf: asOfBody{b.At, b.Applied},
	}
	if t.Rule != "" {
		body.Code, body.Rule = codeQuotaExceeded, &t.Rule
	}
	if t.Budget != (ledger.Budget{}) {
		budget := newBudgetBody(t.Budget, b.Book.Period.End)
		body.Budget = &budget
	}
	if t.Resolution != nil {
		resolution := newResolutionBody(*t.Resolution)
		body.EndedBy = &resolution
	}
	return body
}

func newResolutionBody(r ledger.Resolution) resolutionBody {
	body := resolutionBody{Grant: r.Grant, Tiers: []string{}}
	for _, tier := range r.Tiers {
		body.Tiers = append(body.Tiers, string(tier))
	}
	return body
}

// dryRun answers with the outcome of a request. It changes nothing.
func (a *API) dryRun(w http.ResponseWriter, r *http.Request) error {
	organization, err := organizationFromPath(r)
	if err != nil {
		return err
	}
	var body tryBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	if body.Bytes < 1 || body.Bytes > ledger.MaxCharge {
		return httpapi.Invalid("/bytes", httpapi.CodeInvalidRequest, "bytes is outside of what a request can be charged.", "Use a whole number from 1 on.")
	}
	dryRun, err := a.Forecasts.Try(r.Context(), organization, forecasts.Request(body))
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newDryRunBody(dryRun))
	return nil
}
