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

type entryBody struct {
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

func newEntryBody(e postgres.Entry) entryBody {
	return entryBody{
		ID:          fmt.Sprintf("%d-%d-%d-%d", e.Cause.Source, e.Cause.Partition, e.Cause.Offset, e.Line),
		EffectiveAt: e.Effective, BookedAt: e.Booked, PeriodStart: e.Period.Start,
		From: e.From.String(), To: e.To.String(), Amount: e.Amount, Entries: e.Entries, Reason: e.Reason.String(),
		Project: e.Cause.Project, APIKey: e.Cause.Key, Event: e.Cause.Event,
	}
}

// entries lists the transfers of an organization, the latest first.
func (a *API) entries(w http.ResponseWriter, r *http.Request) error {
	page, err := pageOf[postgres.EntryCursor](r)
	if err != nil {
		return err
	}
	return list(a, w, r, page, newEntryBody, postgres.Entry.Cursor,
		func(ctx context.Context, tx pgx.Tx, organization pg.Organization) ([]postgres.Entry, error) {
			return a.Store.Entries(ctx, tx, organization, page.from, page.to, page.after, page.limit+1)
		})
}
