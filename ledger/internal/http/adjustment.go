package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger/internal/grants"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func adjustmentOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/organizations/{organization}/adjustments", Handle: a.adjust, ID: "createAdjustment", Scopes: []string{ScopeWrite},
			Summary:     "Give back what was charged wrongly, or charge it",
			Description: "Nothing that was booked is changed: the adjustment is booked in the running period and names the other.",
			Headers:     idempotent{},
			Body:        openapi.Body{Type: adjustBody{}},
			Answer:      openapi.Answer{Status: http.StatusCreated, Type: adjustmentBody{}},
			Problems:    limitReached(),
		},
	}
}

type adjustmentBody struct {
	ID           string      `json:"id"`
	Organization string      `json:"organization"`
	Amount       int64       `json:"amount" description:"Given back, or below zero charged"`
	Reason       string      `json:"reason"`
	OfPeriod     *time.Time  `json:"of_period" description:"Start of the period that was wrong; null: none but the running one"`
	At           time.Time   `json:"at"`
	Transfers    []entryBody `json:"transfers"`
}

func newAdjustmentBody(a grants.Adjustment) adjustmentBody {
	body := adjustmentBody{ID: a.ID, Organization: a.Organization, Amount: a.Bytes, Reason: a.Reason, At: a.At, Transfers: []entryBody{}}
	if !a.Of.IsZero() {
		body.OfPeriod = &a.Of
	}
	for _, transfer := range a.Transfers {
		booked := postgres.BookedTransfer{Transfer: transfer, EffectiveAt: transfer.Effective(), BookedAt: a.At}
		body.Transfers = append(body.Transfers, newEntryBody(booked))
	}
	return body
}

// adjustBody is the error of a charge: positive amounts are credited.
// Period is any instant of its period.
type adjustBody struct {
	Amount int64      `json:"amount" required:"true" description:"Above zero: bytes that are given back, as a grant that is used first and lasts until the period ends. Below zero: bytes that are charged"`
	Reason string     `json:"reason" maxLength:"500"`
	Period *time.Time `json:"period" description:"An instant of the period that was wrong; left out: none but the running one"`
}

func (a *API) adjust(w http.ResponseWriter, r *http.Request) error {
	var body adjustBody
	organization, request, err := requestWith(w, r, &body)
	if err != nil {
		return err
	}
	of, err := kept("period", body.Period)
	if err != nil {
		return answer(err, organization)
	}
	made, err := a.Grants.Adjust(r.Context(), organization, request, body.Amount, body.Reason, of)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusCreated, newAdjustmentBody(made))
	return nil
}
