package http

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func (a *API) mergeOperations() []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/error-groups/{group}/merge", Handle: a.merge((*groups.Service).Merge), ID: "mergeErrorGroups",
			Summary: "Merge error groups into one, those that come included",
			Description: "All their errors, also those that come, are shown and counted in the one group, and its state is that of all. " +
				"What was merged into one of them comes along. Groups are of one project, and one group has at most 1,000 others.",
			Headers: idempotent{}, Query: struct{}{},
			Body:     openapi.Body{Type: mergeBody{}},
			Answer:   openapi.Answer{Type: errorGroupBody{}, Description: "The group"},
			Problems: refused,
		},
		{
			Route: "POST /v1/error-groups/{group}/unmerge", Handle: a.merge((*groups.Service).Unmerge), ID: "unmergeErrorGroups",
			Summary:     "Take groups out of the one that they were merged into",
			Description: "Each is unresolved then, and has its own errors again, also those from between.",
			Headers:     idempotent{}, Query: struct{}{},
			Body:     openapi.Body{Type: mergeBody{}},
			Answer:   openapi.Answer{Type: errorGroupBody{}, Description: "The group that they were taken out of"},
			Problems: refused,
		},
	}
}

type mergeBody struct {
	Groups    []string `json:"groups" minItems:"1" maxItems:"100" description:"Ids of groups"`
	IfVersion *int64   `json:"if_version,omitempty" minimum:"0" description:"Refuse with version_conflict unless the group in the path is at this version"`
}

// merge handles what regroups.
func (a *API) merge(regroup func(*groups.Service, context.Context, groups.Request, groups.Merging) (postgres.Group, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		request, err := requestOf(r)
		if err != nil {
			return err
		}
		var body mergeBody
		if err := httpapi.ReadJSON(w, r, &body); err != nil {
			return err
		}
		id := chi.URLParam(r, "group")
		group, err := regroup(a.Service, r.Context(), request, groups.Merging{Into: id, Groups: body.Groups, IfVersion: body.IfVersion})
		var conflict grouping.Conflict
		if errors.As(err, &conflict) {
			return a.conflict(r, conflict)
		}
		if err != nil {
			return notFound(Refusal(err), id)
		}
		httpapi.WriteJSON(w, http.StatusOK, newErrorGroupBody(group))
		return nil
	}
}

// memberBody is a group that was merged into another.
type memberBody struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	Count     int64     `json:"count" minimum:"1" description:"Its own errors"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	MergedAt  time.Time `json:"merged_at"`
}

func newMemberBodies(members []postgres.Group) []memberBody {
	bodies := make([]memberBody, len(members))
	for i, g := range members {
		bodies[i] = memberBody{g.ID, g.Title, g.Count, g.FirstSeen.UTC(), g.LastSeen.UTC(), g.State.Since.UTC()}
	}
	return bodies
}
