package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/forecasts"
	"github.com/weirlog/weir/shared/httpapi"
)

// tryBody is a possible request: its bytes and its spenders.
type tryBody struct {
	Bytes   int64  `json:"bytes"`
	Project string `json:"project"`
	Key     string `json:"key"`
}

type trialBody struct {
	Organization string      `json:"organization"`
	Bytes        int64       `json:"bytes"`
	Accepted     bool        `json:"accepted"`
	Code         string      `json:"code,omitempty"` // of the refusal
	Rule         *string     `json:"rule"`           // that would refuse it; null: it would be accepted
	Covered      int64       `json:"covered"`
	Overage      int64       `json:"overage"`
	Remaining    int64       `json:"remaining"`
	Exhausts     bool        `json:"exhausts"`
	EndsAt       time.Time   `json:"ends_at"`
	EndedBy      *remedyBody `json:"ended_by"`
	Budget       *budgetBody `json:"budget"` // that would refuse it; null: none
	AsOf         asOfBody    `json:"as_of"`
}

// codeQuotaExceeded is the code with which ingest refuses a request,
// whatever the rule.
const codeQuotaExceeded = "quota_exceeded"

func newTrialBody(t forecasts.Trial) trialBody {
	b := t.Balance
	body := trialBody{
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
	if t.Remedy != nil {
		remedy := newRemedyBody(*t.Remedy)
		body.EndedBy = &remedy
	}
	return body
}

func newRemedyBody(r ledger.Remedy) remedyBody {
	body := remedyBody{Grant: r.Grant, Tiers: []string{}}
	for _, tier := range r.Tiers {
		body.Tiers = append(body.Tiers, string(tier))
	}
	return body
}

// dryRun answers with the outcome of a request. It changes nothing.
func (a *API) dryRun(w http.ResponseWriter, r *http.Request) error {
	organization, err := reached(r)
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
	trial, err := a.Forecasts.Try(r.Context(), organization, forecasts.Request(body))
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newTrialBody(trial))
	return nil
}
