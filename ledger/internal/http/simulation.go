package http

import (
	"net/http"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/forecasts"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func simulationOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/organizations/{organization}/simulation", Handle: a.simulate, ID: "simulateSubscription", Scopes: []string{ScopeRead},
			Summary: "What another subscription would change, and would have made of the last 12 periods",
			Description: "Changes nothing. before and after are of now, grants included; a change at the period's end stands in next. Past " +
				"periods are simulated by days and without grants: what a day would have had refused is a part of that day.",
			Body:   openapi.Body{Type: planBody{}},
			Answer: openapi.Answer{Type: simulationBody{}},
		},
	}
}

type simulationBody struct {
	Before  simulatedState    `json:"before"`
	After   simulatedState    `json:"after"`
	Periods []simulatedPeriod `json:"periods" description:"The running one first"`
}

// A simulatedState is a subscription and the running period under it.
type simulatedState struct {
	Subscription subscriptionBody `json:"subscription"`
	Granted      int64            `json:"granted" description:"In the running period"`
	Remaining    int64            `json:"remaining"`
}

type simulatedPeriod struct {
	Period      periodBody `json:"period"`
	Used        int64      `json:"used" description:"As it was"`
	Quota       int64      `json:"quota" description:"Of the plan"`
	Covered     int64      `json:"covered"`
	Overage     int64      `json:"overage"`
	Refused     int64      `json:"refused" description:"What would not have been accepted"`
	ExhaustedOn *string    `json:"exhausted_on" format:"date" description:"The day (UTC) from which on something would have been refused"`
}

func newSimulationBody(s forecasts.Simulation) simulationBody {
	body := simulationBody{
		Before:  simulatedState{newSubscriptionBody(s.Before), s.Granted[0], s.Remaining[0]},
		After:   simulatedState{newSubscriptionBody(s.After), s.Granted[1], s.Remaining[1]},
		Periods: []simulatedPeriod{},
	}
	for _, p := range s.Periods {
		period := periodBody{p.Period.Start, p.Period.End}
		body.Periods = append(body.Periods, simulatedPeriod{period, p.Used, p.Quota, p.Covered, p.Overage, p.Refused, dayText(p.Runs)})
	}
	return body
}

// simulate answers with a subscription's effect now and on past
// periods. It changes nothing.
func (a *API) simulate(w http.ResponseWriter, r *http.Request) error {
	organization, err := organizationFromPath(r)
	if err != nil {
		return err
	}
	var body subscribeBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	wanted, err := body.wanted()
	if err == nil && body.Suspended != nil {
		err = ledger.Invalid{Field: "suspended", Detail: "A suspension can't be simulated: nothing would be accepted.", Fix: "Leave it out."}
	}
	if err != nil {
		return answer(err, organization)
	}
	found, err := a.Forecasts.Simulate(r.Context(), organization, wanted)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newSimulationBody(found))
	return nil
}
