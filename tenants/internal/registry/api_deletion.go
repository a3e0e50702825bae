package registry

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func deletionOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "DELETE /v1/organizations/{id}", ID: "deleteOrganization",
			Handle:  a.deleting("organization", a.Deletions.DeleteOrganization),
			Summary: "Delete an organization with all that it has (operators only; owners do it in the console)",
			Answer:  openapi.Answer{Status: http.StatusAccepted, Type: deletionJSON{}, Description: "Hidden, and its credentials are refused; asked again, the same"},
		},
		{
			Route: "POST /v1/organizations/{id}/restore", ID: "restoreOrganization",
			Handle:   api.ChangeHandler(a.Kit, "organization", api.NoBody, api.WithoutBody(a.Deletions.Restore), showDeletion),
			Summary:  "Bring back an organization that was deleted, as long as nothing is erased (operators only; owners do it in the console)",
			Answer:   openapi.Answer{Type: deletionJSON{}, Description: "There again, and its credentials are in force"},
			Problems: map[int]string{http.StatusConflict: "conflict: it is being erased, or is gone"},
		},
		{
			Route: "DELETE /v1/projects/{id}", ID: "deleteProject",
			Handle:  a.deleting("project", a.Deletions.DeleteProject),
			Summary: "Delete a project with its logs and errors (operators only; owners do it in the console)",
			Answer:  openapi.Answer{Status: http.StatusAccepted, Type: deletionJSON{}, Description: "Hidden, and its credentials are refused; asked again, the same"},
		},
		{
			Route: "POST /v1/projects/{id}/restore", ID: "restoreProject",
			Handle:   api.ChangeHandler(a.Kit, "project", api.NoBody, api.WithoutBody(a.Deletions.Restore), showDeletion),
			Summary:  "Bring back a project that was deleted, as long as nothing is erased (operators only; owners do it in the console)",
			Answer:   openapi.Answer{Type: deletionJSON{}, Description: "There again, and its credentials are in force"},
			Problems: map[int]string{http.StatusConflict: "conflict: it is being erased, or is gone"},
		},
		{
			Route: "GET /v1/deletions", ID: "listDeletions",
			Handle:   api.ListHandler("organization", api.OneOrganizationOf, a.Deletions.List, showListedDeletion, placeOfDeletion),
			Summary:  "List the deletions of an organization and its projects, and what each module removed",
			Query:    api.OrganizationQuery{},
			Answer:   openapi.Answer{Type: httpapi.List[deletionJSON]{}, Description: "A page, from old to new"},
			Problems: map[int]string{http.StatusNotFound: api.Unknown},
		},
	}
}

type deletionJSON struct {
	ID           string                      `json:"id" description:"Of the organization or project that is deleted"`
	Organization string                      `json:"organization"`
	Project      *string                     `json:"project" description:"null: all of the organization"`
	State        tenants.DeletionState       `json:"state" enum:"cancelled,deleting,erasing,gone" description:"deleting: hidden and refused, and can be restored; erasing: nothing brings it back; gone: every module has removed what it had"`
	RequestedAt  time.Time                   `json:"requested_at"`
	BeginsAt     time.Time                   `json:"begins_at" description:"Until then it can be restored"`
	GoneBy       time.Time                   `json:"gone_by"`
	FinishedAt   *time.Time                  `json:"finished_at"`
	Removed      map[string]map[string]int64 `json:"removed" description:"Rows that were removed, by module and table; a module that is not there has not finished"`
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
func (a API) deleting(what string, carryOut func(context.Context, unitofwork.Request, string) (tenants.Deletion, error)) api.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
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
	}
}
