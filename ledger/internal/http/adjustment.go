package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger/internal/grants"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
)

type adjustmentBody struct {
	ID           string         `json:"id"`
	Organization string         `json:"organization"`
	Amount       int64          `json:"amount"`
	Reason       string         `json:"reason"`
	OfPeriod     *time.Time     `json:"of_period"` // start of the corrected period; null: the running one
	At           time.Time      `json:"at"`
	Transfers    []transferBody `json:"transfers"`
}

func newAdjustmentBody(a grants.Adjustment) adjustmentBody {
	body := adjustmentBody{ID: a.ID, Organization: a.Organization, Amount: a.Bytes, Reason: a.Reason, At: a.At, Transfers: []transferBody{}}
	if !a.Of.IsZero() {
		body.OfPeriod = &a.Of
	}
	for _, transfer := range a.Transfers {
		booked := postgres.BookedTransfer{Transfer: transfer, EffectiveAt: transfer.Effective(), BookedAt: a.At}
		body.Transfers = append(body.Transfers, newTransferBody(booked))
	}
	return body
}

// adjustBody is the error of a charge: positive amounts are credited.
// Period is any instant of its period.
type adjustBody struct {
	Amount int64      `json:"amount"`
	Reason string     `json:"reason"`
	Period *time.Time `json:"period"`
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
