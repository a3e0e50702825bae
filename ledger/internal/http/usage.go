package http

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

type usageBody struct {
	Day     string `json:"day"` // UTC
	Project string `json:"project"`
	Bytes   int64  `json:"bytes"`
	Entries int64  `json:"entries"`
	Errors  int64  `json:"errors"`
}

func newUsageBody(u postgres.Usage) usageBody {
	return usageBody{u.Day.Format(time.DateOnly), u.Project, u.Bytes, u.Entries, u.Errors}
}

// usage lists what was charged per day of acceptance and project, the latest day first.
func (a *API) usage(w http.ResponseWriter, r *http.Request) error {
	page, err := pageOf[postgres.UsageCursor](r, "project")
	if err != nil {
		return err
	}
	return list(a, w, r, page, newUsageBody, postgres.Usage.Cursor,
		func(ctx context.Context, tx pgx.Tx, organization pg.Organization) ([]postgres.Usage, error) {
			return a.Store.Usage(ctx, tx, organization, r.URL.Query().Get("project"), page.from, page.to, page.after, page.limit+1)
		})
}
