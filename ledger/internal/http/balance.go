package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/service"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
)

type balanceBody struct {
	Organization      string     `json:"organization"`
	Tier              string     `json:"tier"`
	RequestsPerMinute int        `json:"requests_per_minute"`
	Period            periodBody `json:"period"`
	Granted           int64      `json:"granted"`
	Consumed          int64      `json:"consumed"`
	Remaining         int64      `json:"remaining"`
	Overage           int64      `json:"overage"` // the part of consumed that nothing covers
	Expired           int64      `json:"expired"`
	Voided            int64      `json:"voided"`
	State             string     `json:"state"`
	AsOf              asOfBody   `json:"as_of"`
}

type periodBody struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// asOfBody reports when the answer was true and how much of the log it contains.
type asOfBody struct {
	Time      time.Time          `json:"time"`
	Positions contract.Positions `json:"positions"` // next offset of weir.logs.v1 by partition
}

func newBalanceBody(b service.Balance) balanceBody {
	return balanceBody{
		Organization: b.Organization.ID, Tier: string(b.Plan.Tier), RequestsPerMinute: b.Terms.RequestsPerMinute,
		Period:  periodBody{b.Book.Period.Start, b.Book.Period.End},
		Granted: b.Book.Granted(), Consumed: b.Book.Used(), Remaining: b.Book.Remaining(),
		Overage: b.Book.Balances[ledger.Overage], Expired: b.Book.Balances[ledger.Expired], Voided: b.Book.Balances[ledger.Voided],
		State: b.State(), AsOf: asOfBody{b.At, b.Applied},
	}
}

// balance answers with the balance of now, or of the instant at.
func (a *API) balance(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.OnlyKnown(r, nil, "at"); err != nil {
		return err
	}
	at, err := instant(r, "at", time.Time{})
	if err != nil {
		return err
	}
	organization, err := reached(r)
	if err != nil {
		return err
	}
	balance, err := a.Service.Balance(r.Context(), organization, at)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newBalanceBody(balance))
	return nil
}
