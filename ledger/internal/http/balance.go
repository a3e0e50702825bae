package http

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
)

type balanceBody struct {
	Organization      string     `json:"organization"`
	Tier              string     `json:"tier"`
	RequestsPerMinute int        `json:"requests_per_minute"`
	Period            periodBody `json:"period"`
	Granted           int64      `json:"granted"`
	Consumed          int64      `json:"consumed"`
	Remaining         int64      `json:"remaining"`
	Overage           int64      `json:"overage"` // the part of consumed that no grant covers
	State             string     `json:"state"`
	AsOf              asOfBody   `json:"as_of"`
}

type periodBody struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// asOfBody says when the answer was true and how much of the log it contains.
type asOfBody struct {
	Time      time.Time          `json:"time"`
	Positions contract.Positions `json:"positions"` // next offset of weir.logs.v1 by partition
}

func newBalanceBody(b postgres.Balance) balanceBody {
	return balanceBody{
		Organization: b.Organization.ID, Tier: string(b.Tier), RequestsPerMinute: b.Terms.RequestsPerMinute,
		Period:  periodBody{b.Book.Period.Start, b.Book.Period.End},
		Granted: b.Book.Granted(), Consumed: b.Book.Used(), Remaining: b.Book.Remaining(),
		Overage: b.Book.Balances[ledger.Overage],
		State:   b.Organization.State(b.Book), AsOf: asOfBody{b.At, b.Applied},
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
	var balance postgres.Balance
	err = a.read(r, func(ctx context.Context, tx pgx.Tx, organization pg.Organization) (err error) {
		if at.IsZero() {
			balance, err = a.Store.Balance(ctx, tx, organization)
		} else {
			balance, err = a.Store.BalanceAt(ctx, tx, organization, at)
		}
		return err
	})
	if err == nil {
		httpapi.WriteJSON(w, http.StatusOK, newBalanceBody(balance))
	}
	return err
}
