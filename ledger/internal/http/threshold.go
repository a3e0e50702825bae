package http

import (
	"net/http"

	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func thresholdOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/thresholds", Handle: a.thresholds, ID: "getThresholds", Scopes: []string{ScopeRead},
			Summary: "What is announced when it is reached",
			Query:   struct{}{},
			Answer:  openapi.Answer{Type: thresholdsBody{}},
		},
		{
			Route: "PUT /v1/organizations/{organization}/thresholds", Handle: a.setThresholds, ID: "setThresholds", Scopes: []string{ScopeWrite},
			Summary:     "Have other thresholds announced",
			Description: "What of the running period has been reached by now, and lies above what was announced, is announced at once.",
			Headers:     idempotent{},
			Body:        openapi.Body{Type: thresholdsSpecBody{}},
			Answer:      openapi.Answer{Type: thresholdsBody{}},
		},
	}
}

type thresholdsBody struct {
	Organization string `json:"organization"`
	Percents     []int  `json:"percents" minimum:"1" maximum:"1000" maxItems:"10" description:"Shares of the allowance and of budgets that are announced when they are reached, once in a period"`
	Own          bool   `json:"own" description:"They are the organization's own; else those of the installation"`
}

func newThresholdsBody(organization string, t plans.Thresholds) thresholdsBody {
	return thresholdsBody{Organization: organization, Percents: append([]int{}, t.Percents...), Own: t.Own}
}

// thresholdsSpecBody is null for the installation's thresholds, and
// empty for none.
type thresholdsSpecBody struct {
	Percents *[]int `json:"percents" required:"true" nullable:"true" minimum:"1" maximum:"1000" maxItems:"10" description:"In percent, growing. Empty: none; null: those of the installation"`
}

// thresholds answers with the thresholds of an organization.
func (a *API) thresholds(w http.ResponseWriter, r *http.Request) error {
	organization, err := organizationFromPath(r)
	if err != nil {
		return err
	}
	found, err := a.Services.Plans.Thresholds(r.Context(), organization)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newThresholdsBody(organization, found))
	return nil
}

// setThresholds changes the thresholds of an organization.
func (a *API) setThresholds(w http.ResponseWriter, r *http.Request) error {
	var body thresholdsSpecBody
	organization, request, err := requestWith(w, r, &body)
	if err != nil {
		return err
	}
	var percents []int
	if body.Percents != nil {
		percents = append([]int{}, *body.Percents...)
	}
	made, err := a.Services.Plans.SetThresholds(r.Context(), organization, request, percents)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newThresholdsBody(organization, made))
	return nil
}
