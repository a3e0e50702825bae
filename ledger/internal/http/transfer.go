package http

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
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
}

func newTransferBody(t postgres.BookedTransfer) transferBody {
	return transferBody{
		ID:          fmt.Sprintf("%d-%d-%d-%d", t.Cause.Source, t.Cause.Partition, t.Cause.Offset, t.Line),
		EffectiveAt: t.Effective, BookedAt: t.Booked, PeriodStart: t.Period.Start,
		From: t.From.String(), To: t.To.String(), Amount: t.Amount, Entries: t.Entries, Reason: t.Reason.String(),
		Project: t.Cause.Project, APIKey: t.Cause.Key, Event: t.Cause.Event,
	}
}

// entries lists the transfers of an organization, the latest first.
func (a *API) entries(w http.ResponseWriter, r *http.Request) error {
	page, err := pageOf[postgres.TransferCursor](r)
	if err != nil {
		return err
	}
	return list(a, w, r, page, newTransferBody, postgres.BookedTransfer.Cursor,
		func(ctx context.Context, tx pgx.Tx, organization pg.Organization) ([]postgres.BookedTransfer, error) {
			return a.Store.Transfers(ctx, tx, organization, page.from, page.to, page.after, page.limit+1)
		})
}
