package http

import (
	"context"
	"time"

	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func mergeOperations(a *access, merges *groups.Merges) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/error-groups/{group}/merge", Handle: a.changes(merging(merges.Merge)), ID: "mergeErrorGroups",
			Summary: "Merge error groups into one, those that come included",
			Description: "All their errors, also those that come, are shown and counted in the one group, and its state is that of all. " +
				"What was merged into one of them comes along. Groups are of one project, and one group has at most 1,000 others.",
			Headers: idempotent{}, Query: struct{}{},
			Body:     openapi.Body{Type: mergeBody{}},
			Answer:   openapi.Answer{Type: errorGroupBody{}, Description: "The group"},
			Problems: refused,
		},
		{
			Route: "POST /v1/error-groups/{group}/unmerge", Handle: a.changes(merging(merges.Unmerge)), ID: "unmergeErrorGroups",
			Summary:     "Take groups out of the one that they were merged into",
			Description: "Each is unresolved then, and has its own errors again, also those from between.",
			Headers:     idempotent{}, Query: struct{}{},
			Body:     openapi.Body{Type: mergeBody{}},
			Answer:   openapi.Answer{Type: errorGroupBody{}, Description: "The group that they were taken out of"},
			Problems: refused,
		},
		{
			Route: "POST /v1/error-groups/{group}/split", Handle: a.changes(splitting(merges)), ID: "splitErrorGroup",
			Summary: "Make errors like an occurrence a group of their own",
			Description: "It holds for errors that are accepted from now on; earlier ones stay where they were counted. The first of them creates the group, " +
				"whose id activity has. Whole messages and ten own frames are compared, or, where samples don't differ in these, all own frames of the chain. " +
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

func splitting(merges *groups.Merges) handler {
	return with(func(c *call, body splitBody) (any, error) {
		return as(newErrorGroupBody)(merges.Split(c.ctx(), c.request, c.param("group"), body.Occurrence, body.IfVersion))
	})
}

type mergeBody struct {
	Groups    []string `json:"groups" minItems:"1" maxItems:"100" description:"Ids of groups"`
	IfVersion *int64   `json:"if_version,omitempty" minimum:"0" description:"Refuse with version_conflict unless the group in the path is at this version"`
}

// merging handles a use case that merges or the other way round.
func merging(change func(context.Context, groups.Request, groups.MergeRequest) (postgres.Group, error)) handler {
	return with(func(c *call, body mergeBody) (any, error) {
		return as(newErrorGroupBody)(change(c.ctx(), c.request, groups.MergeRequest{Into: c.param("group"), Groups: body.Groups, IfVersion: body.IfVersion}))
	})
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

func newMemberBody(g postgres.Group) memberBody {
	return memberBody{g.ID, g.Title, g.Count, g.FirstSeen.UTC(), g.LastSeen.UTC(), g.State.Since.UTC()}
}
