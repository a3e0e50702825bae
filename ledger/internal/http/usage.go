package http

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
)

type usageBody struct {
	Day     string `json:"day"` // UTC
	Project string `json:"project"`
	Bytes   int64  `json:"bytes"`
	Entries int64  `json:"entries"`
	Errors  int64  `json:"errors"`

	cursor postgres.UsageCursor
}

func newUsageBody(u postgres.Usage) usageBody {
	return usageBody{u.Day.Format(time.DateOnly), u.Project, u.Bytes, u.Entries, u.Errors, u.Cursor()}
}

// usage lists what was charged per day of acceptance and project, the latest day first.
func (a *API) usage(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.OnlyKnown(r, nil, "project", "from", "to", "limit", "cursor"); err != nil {
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
	var after postgres.UsageCursor
	if err := position(page, &after); err != nil {
		return err
	}
	var items []usageBody
	err = a.read(r, func(ctx context.Context, tx pgx.Tx, organization pg.Organization) error {
		if err := a.Store.Exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err := a.Store.Usage(ctx, tx, organization, r.URL.Query().Get("project"), from, to, after, page.Limit+1)
		for _, use := range found {
			items = append(items, newUsageBody(use))
		}
		return err
	})
	if err == nil {
		httpapi.WriteJSON(w, http.StatusOK, httpapi.NewList(items, page.Limit, func(last usageBody) any { return last.cursor }))
	}
	return err
}
