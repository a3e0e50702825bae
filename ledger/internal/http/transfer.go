package http

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
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

	cursor postgres.EntryCursor
}

func newEntryBody(e postgres.Entry) entryBody {
	return entryBody{
		ID:          fmt.Sprintf("%d-%d-%d-%d", e.Cause.Source, e.Cause.Partition, e.Cause.Offset, e.Line),
		EffectiveAt: e.Effective, BookedAt: e.Booked, PeriodStart: e.Period.Start,
		From: e.From.String(), To: e.To.String(), Amount: e.Amount, Entries: e.Entries, Reason: e.Reason.String(),
		Project: e.Cause.Project, APIKey: e.Cause.Key, Event: e.Cause.Event, cursor: e.Cursor(),
	}
}

// entries lists the transfers of an organization, the latest first.
func (a *API) entries(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.OnlyKnown(r, nil, "from", "to", "limit", "cursor"); err != nil {
		return err
	}
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return err
	}
	from, to, err := span(r)
	if err != nil {
		return err
	}
	var after postgres.EntryCursor
	if err := position(page, &after); err != nil {
		return err
	}
	var items []entryBody
	err = a.read(r, func(ctx context.Context, tx pgx.Tx, organization pg.Organization) error {
		if err := a.Store.Exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err := a.Store.Entries(ctx, tx, organization, from, to, after, page.Limit+1)
		for _, entry := range found {
			items = append(items, newEntryBody(entry))
		}
		return err
	})
	if err == nil {
		httpapi.WriteJSON(w, http.StatusOK, httpapi.NewList(items, page.Limit, func(last entryBody) any { return last.cursor }))
	}
	return err
}
