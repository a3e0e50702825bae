package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
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
	organization, err := reached(r)
	if err != nil {
		return err
	}
	found, err := a.Service.Usage(r.Context(), organization, postgres.UsageQuery{
		Project: r.URL.Query().Get("project"), From: page.from, To: page.to, After: page.after, Limit: page.limit + 1,
	})
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteList(w, r, found, page.limit, newUsageBody, postgres.Usage.Cursor)
	return nil
}
