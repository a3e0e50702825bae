package http

import (
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type mergeRoutes struct{ merges *groups.Merges }

func mergeOperations(a *access, merges *groups.Merges) []openapi.Operation {
	m := mergeRoutes{merges}
	return []openapi.Operation{
		{
			Route: "POST /v1/error-groups/{group}/merge", Handle: a.changes(with(m.merge)), ID: "mergeErrorGroup",
			Summary: "Merge an error group into another, with all that was merged into it",
			Description: "Errors of both, also those that come, are shown and counted in the group that remains, and its state is that of all. " +
				"Both are of one project, and one group has at most 1,000 others.",
			Headers: idempotent{}, Query: struct{}{},
			Body:     openapi.Body{Type: mergeBody{}},
			Answer:   openapi.Answer{Type: errorGroupBody{}, Description: "The group that remains"},
			Problems: refused,
		},
		{
			Route: "POST /v1/error-groups/{group}/unmerge", Handle: a.changes(with(m.unmerge)), ID: "unmergeErrorGroups",
			Summary:     "Take groups out of the one that they were merged into",
			Description: "Each is unresolved then, and has its own errors again, also those from between.",
			Headers:     idempotent{}, Query: struct{}{},
			Body:     openapi.Body{Type: unmergeBody{}},
			Answer:   openapi.Answer{Type: errorGroupBody{}, Description: "The group that they were taken out of"},
			Problems: refused,
		},
		{
			Route: "POST /v1/error-groups/{group}/split", Handle: a.changes(with(m.split)), ID: "splitErrorGroup",
			Summary: "Make errors with the hash of an occurrence a group of their own",
			Description: "It holds for errors that are accepted from now on; earlier ones stay where they were counted. The first of them creates the group, " +
				"whose id activity has. The hash is of the whole message and ten own frames, or, where samples don't differ in these, of all own frames of the chain. " +
				"A project has at most 100 splits. To undo it, merge the groups.",
			Headers: idempotent{}, Query: struct{}{},
			Body:     openapi.Body{Type: splitBody{}},
			Answer:   openapi.Answer{Type: errorGroupBody{}, Description: "The group"},
			Problems: refused,
		},
	}
}

type mergeBody struct {
	Into      string `json:"into" required:"true" minLength:"1" maxLength:"64" description:"Id of the group that remains"`
	IfVersion *int64 `json:"if_version,omitempty" minimum:"0" description:"Refuse with version_conflict unless the group that remains is at this version"`
}

func (m mergeRoutes) merge(c *call, body mergeBody) (any, error) {
	if body.Into == "" {
		return nil, grouping.Invalid{Field: "into", Detail: "It names no group.", Fix: "Send the id of the group that remains."}
	}
	wanted := groups.MergeRequest{Into: body.Into, Groups: []string{c.param("group")}, IfVersion: body.IfVersion}
	return as(newErrorGroupBody)(m.merges.Merge(c.ctx(), c.request, wanted))
}

type unmergeBody struct {
	Groups    []string `json:"groups" minItems:"1" maxItems:"100" description:"Ids of groups"`
	IfVersion *int64   `json:"if_version,omitempty" minimum:"0" description:"Refuse with version_conflict unless the group in the path is at this version"`
}

func (m mergeRoutes) unmerge(c *call, body unmergeBody) (any, error) {
	wanted := groups.MergeRequest{Into: c.param("group"), Groups: body.Groups, IfVersion: body.IfVersion}
	return as(newErrorGroupBody)(m.merges.Unmerge(c.ctx(), c.request, wanted))
}

type splitBody struct {
	Hash      string `json:"hash" required:"true" minLength:"32" maxLength:"32" description:"The hash of an occurrence of the group"`
	IfVersion *int64 `json:"if_version,omitempty" minimum:"0" description:"Refuse with version_conflict unless the group is at this version"`
}

func (m mergeRoutes) split(c *call, body splitBody) (any, error) {
	return as(newErrorGroupBody)(m.merges.Split(c.ctx(), c.request, c.param("group"), body.Hash, body.IfVersion))
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
