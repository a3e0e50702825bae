package registry

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

type deletionJSON struct {
	ID           string                      `json:"id"` // of what is deleted
	Organization string                      `json:"organization"`
	Project      *string                     `json:"project"`
	State        tenants.DeletionState       `json:"state"`
	RequestedAt  time.Time                   `json:"requested_at"`
	BeginsAt     time.Time                   `json:"begins_at"`
	GoneBy       time.Time                   `json:"gone_by"`
	FinishedAt   *time.Time                  `json:"finished_at"`
	Removed      map[string]map[string]int64 `json:"removed"`
}

func showListedDeletion(d ListedDeletion) deletionJSON {
	return deletionJSON{
		ID: d.ID(), Organization: d.Organization, Project: api.OrNull(d.Project), State: d.State, RequestedAt: d.RequestedAt.UTC(), BeginsAt: d.BeginsAt.UTC(),
		GoneBy: d.GoneBy.UTC(), FinishedAt: api.Optional(d.FinishedAt), Removed: d.Removed,
	}
}

func showDeletion(d tenants.Deletion) deletionJSON {
	removed := d.Removed
	if removed == nil {
		removed = map[string]map[string]int64{}
	}
	return showListedDeletion(ListedDeletion{
		Deletable: d.Deletable, State: d.State(), RequestedAt: d.RequestedAt, BeginsAt: d.BeginsAt, GoneBy: d.GoneBy, FinishedAt: d.FinishedAt, Removed: removed,
	})
}

func placeOfDeletion(d ListedDeletion) query.Position {
	return query.Position{At: d.RequestedAt, ID: d.ID()}
}

// deleting handles requests to delete the thing in the path, called what.
func (a API) deleting(what string, carryOut func(context.Context, unitofwork.Request, string) (tenants.Deletion, error)) http.HandlerFunc {
	return httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error {
		request, err := a.RequestOf(r)
		if err != nil {
			return err
		}
		id := chi.URLParam(r, "id")
		deletion, err := carryOut(r.Context(), request, id)
		if err != nil {
			return api.ProblemOf(err, what, id)
		}
		httpapi.WriteJSON(w, http.StatusAccepted, showDeletion(deletion))
		return nil
	})
}
