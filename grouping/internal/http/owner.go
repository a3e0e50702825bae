package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type ownerRoutes struct{ owners *groups.Owners }

func ownerOperations(a *access, owners *groups.Owners) []openapi.Operation {
	o := ownerRoutes{owners}
	read := map[int]string{http.StatusNotFound: "There is no such project in the key's organization"}
	changed := map[int]string{
		http.StatusNotFound: read[http.StatusNotFound], http.StatusForbidden: "forbidden: the key does not read the whole organization (access full)",
	}
	const path = "/v1/projects/{project}/error-owners"
	return []openapi.Operation{
		{
			Route: "GET " + path, Handle: a.reads(o.get), ID: "getErrorOwners", Summary: "The rules about who looks after new error groups of a project",
			Query: struct{}{}, Answer: openapi.Answer{Type: ownersBody{}, Description: "The rules"}, Problems: read,
		},
		{
			Route: "PUT " + path, Handle: a.changes(with(o.set)), ID: "setErrorOwners", Summary: "Say who looks after new error groups of a project",
			Description: "The first rule that matches in all its patterns counts. They hold for groups whose first error is accepted from now on. " +
				"The rules of a member who is removed from the organization go as well.",
			Headers: idempotent{}, Query: struct{}{}, Body: openapi.Body{Type: setOwnersBody{}},
			Answer: openapi.Answer{Type: ownersBody{}, Description: "The rules"},
			Problems: map[int]string{
				http.StatusNotFound: changed[http.StatusNotFound], http.StatusForbidden: changed[http.StatusForbidden],
				http.StatusConflict: "version_conflict: somebody else has changed the rules since if_since",
			},
		},
		{
			Route: "POST " + path + "/apply", Handle: a.changes(o.apply), ID: "applyErrorOwners",
			Summary:     "Give unresolved error groups that nobody looks after to whom the rules name",
			Description: "Of 1,000 groups, those last seen first. Send next_cursor as cursor for the next ones. Who does it twice does nothing more.",
			Query:       applyQuery{}, Answer: openapi.Answer{Type: appliedBody{}, Description: "What was done"}, Problems: changed,
		},
	}
}

type ownerBody struct {
	Path        string `json:"path,omitempty" maxLength:"200" description:"Of a file of own code. * is any characters but a slash, ** any; a folder ends with a slash. Without a slash before it, it may begin at any folder"`
	Function    string `json:"function,omitempty" maxLength:"200" description:"Of own code, with its module or without. Here and below * is any characters"`
	Environment string `json:"environment,omitempty" maxLength:"200"`
	Service     string `json:"service,omitempty" maxLength:"200"`
	Host        string `json:"host,omitempty" maxLength:"200"`
	Release     string `json:"release,omitempty" maxLength:"200"`
	Assignee    string `json:"assignee" required:"true" minLength:"1" maxLength:"100" description:"Id or name of a member, or a label such as that of a team; a name is answered with the id"`

	Metadata map[string]string `json:"metadata,omitempty" description:"Patterns of values in the metadata of the first error, by paths such as tenant.id; at most 10 different paths in all rules"`
}

type setOwnersBody struct {
	Rules   []ownerBody `json:"rules" required:"true" maxItems:"50" description:"In their order; each has at least one pattern"`
	IfSince *time.Time  `json:"if_since,omitempty" description:"Refuse with version_conflict unless the present rules are those from this time on"`
}

type ownersBody struct {
	Rules []ownerBody `json:"rules" maxItems:"50"`
	Since *time.Time  `json:"since" description:"For groups whose first error is accepted from this time on; null: there are none"`
	Actor *string     `json:"actor" description:"Id of the member or API key that set them"`
}

type applyQuery struct {
	Cursor string `query:"cursor" description:"next_cursor of the answer before"`
}

type appliedBody struct {
	Assigned   int     `json:"assigned" description:"Groups that somebody looks after now"`
	Looked     int     `json:"looked_at" maximum:"1000" description:"Groups that nobody looked after"`
	NextCursor *string `json:"next_cursor" description:"For the next groups; null: these were all"`
}

func newOwnersBody(o postgres.OwnerRules) ownersBody {
	rules := itemsOf(o.Rules, func(rule grouping.OwnerRule) ownerBody { return ownerBody(rule) })
	return ownersBody{Rules: rules, Since: httpapi.TimeOrNull(o.Since), Actor: httpapi.OrNull(o.By)}
}

func (o ownerRoutes) get(c *call) (any, error) {
	versions, err := o.owners.Versions(c.ctx(), c.who.Organization, c.project)
	var last postgres.OwnerRules
	if len(versions) > 0 {
		last = versions[0]
	}
	return newOwnersBody(last), err
}

func (o ownerRoutes) set(c *call, body setOwnersBody) (any, error) {
	rules := itemsOf(body.Rules, func(rule ownerBody) grouping.OwnerRule { return grouping.OwnerRule(rule) })
	return as(newOwnersBody)(o.owners.Set(c.ctx(), c.request, c.project, rules, body.IfSince))
}

func (o ownerRoutes) apply(c *call) (any, error) {
	var after postgres.GroupCursor
	if cursor := c.r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(c.r, cursor, &after); err != nil {
			return nil, err
		}
	}
	done, err := o.owners.Apply(c.ctx(), c.request, c.project, after)
	body := appliedBody{Assigned: done.Assigned, Looked: done.Looked}
	if err == nil && done.Next != nil {
		next := httpapi.EncodeCursor(c.r, done.Next)
		body.NextCursor = &next
	}
	return body, err
}
