package http

import (
	"net/http"

	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/shared/httpapi"
)

type thresholdsBody struct {
	Organization string `json:"organization"`
	Percents     []int  `json:"percents"`
	Own          bool   `json:"own"` // false: the installation's
}

func newThresholdsBody(organization string, t plans.Thresholds) thresholdsBody {
	return thresholdsBody{Organization: organization, Percents: append([]int{}, t.Percents...), Own: t.Own}
}

// thresholdsSpecBody is null for the installation's thresholds, and
// empty for none.
type thresholdsSpecBody struct {
	Percents *[]int `json:"percents"`
}

// thresholds answers with the thresholds of an organization.
func (a *API) thresholds(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.OnlyKnown(r, nil); err != nil {
		return err
	}
	organization, err := reached(r)
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
