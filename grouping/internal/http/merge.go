package http

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

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
		{
			Route: "POST /v1/error-groups/{group}/split", Handle: a.split, ID: "splitErrorGroup",
			Summary: "Make errors like an occurrence a group of their own",
			Description: "It holds for errors that are accepted from now on; earlier ones stay where they were counted. The first of them creates the group, " +
				"whose id activity has. Whole messages and ten own frames are compared, or all own frames of the whole chain where that takes more to tell samples apart. " +
				"A project has at most 100 splits. To undo it, merge the groups.",
			Headers: idempotent{}, Query: struct{}{},
			Body:     openapi.Body{Type: splitBody{}},
			Answer:   openapi.Answer{Type: errorGroupBody{}, Description: "The group"},
			Problems: refused,
		},
	}
}

type splitBody struct {
	Occurrence string `json:"occurrence" minLength:"1" maxLength:"256" description:"The entry_id of an occurrence of the group"`
	IfVersion  *int64 `json:"if_version,omitempty" minimum:"0" description:"Refuse with version_conflict unless the group is at this version"`
}

func (a *API) split(w http.ResponseWriter, r *http.Request) error {
	request, err := requestOf(r)
	if err != nil {
		return err
	}
	var body splitBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	id := chi.URLParam(r, "group")
	group, err := a.Service.Split(r.Context(), request, id, body.Occurrence, body.IfVersion)
	return a.answer(w, r, id, group, err)
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
		return a.answer(w, r, id, group, err)
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
