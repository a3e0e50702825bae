package http

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
)

type transferBody struct {
	ID          string    `json:"id"`
	EffectiveAt time.Time `json:"effective_at"`
	BookedAt    time.Time `json:"booked_at"`
	PeriodStart time.Time `json:"period_start"`
	From        string    `json:"from"`
	To          string    `json:"to"`
	Amount      int64     `json:"amount"`
	Entries     int       `json:"entries"`
	Reason      string    `json:"reason"`
	Project     string    `json:"project,omitempty"`
	APIKey      string    `json:"api_key,omitempty"`
	Event       string    `json:"event"`
	Grant       string    `json:"grant,omitempty"`
	OfPeriod    time.Time `json:"of_period,omitzero"` // start of the period that it makes good
}

func newTransferBody(t postgres.BookedTransfer) transferBody {
	return transferBody{
		ID:          fmt.Sprintf("%d-%d-%d-%d", t.Cause.Source, t.Cause.Partition, t.Cause.Offset, t.Line),
		EffectiveAt: t.EffectiveAt, BookedAt: t.BookedAt, PeriodStart: t.Period.Start,
		From: t.From.String(), To: t.To.String(), Amount: t.Amount, Entries: t.Entries, Reason: t.Reason.String(),
		Project: t.Cause.Project, APIKey: t.Cause.Key, Event: t.Cause.Event, Grant: t.Grant, OfPeriod: t.Of,
	}
}

// transfers lists the transfers of an organization, the latest first; there they are called
// entries.
func (a *API) transfers(w http.ResponseWriter, r *http.Request) error {
	page, err := pageOf[postgres.TransferCursor](r)
	if err != nil {
		return err
	}
	organization, err := reached(r)
	if err != nil {
		return err
	}
	found, err := a.Balances.Transfers(r.Context(), organization,
		postgres.TransferQuery{From: page.from, To: page.to, After: page.after, Limit: page.limit + 1})
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteList(w, r, found, page.limit, newTransferBody, postgres.BookedTransfer.Cursor)
	return nil
}
