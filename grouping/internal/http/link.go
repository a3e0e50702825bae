package http

import (
	"net/http"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type linkRoutes struct {
	links  *groups.Links
	groups *groups.Groups
}

func linkOperations(a *access, links *groups.Links, of *groups.Groups) []openapi.Operation {
	l := linkRoutes{links, of}
	const path = "/v1/error-groups/{group}/links"
	return []openapi.Operation{
		{
			Route: "GET " + path, Handle: a.reads(l.list), ID: "listErrorGroupLinks", Summary: "What an error group is linked to, such as tickets",
			Query: struct{}{}, Answer: openapi.Answer{Type: linkListBody{}, Description: "All links, in the order in which they came"},
			Problems: map[int]string{http.StatusNotFound: refused[http.StatusNotFound]},
		},
		{
			Route: "POST " + path, Handle: a.changes(with(l.add)), ID: "addErrorGroupLink", Summary: "Link an error group to a ticket or the like",
			Description: "A link to the same address is replaced. Facts about the group have the addresses of its links, and the webhook of a link is notified " +
				"when the group is resolved, reopened or regresses, whether or not it asks for these events.",
			Headers: idempotent{}, Query: struct{}{}, Body: openapi.Body{Type: newLinkBody{}},
			Answer: openapi.Answer{Status: http.StatusCreated, Type: linkBody{}, Description: "The link"}, Problems: refused,
		},
		{
			Route: "DELETE " + path + "/{link}", Handle: a.changes(l.remove), ID: "removeErrorGroupLink", Summary: "Remove a link of an error group",
			Description: "A link that is gone already stays so.", Headers: idempotent{}, Query: struct{}{},
			Answer: openapi.Answer{Type: linkListBody{}, Description: "The links that are left"}, Problems: refused,
		},
	}
}

type newLinkBody struct {
	URL     string `json:"url" required:"true" maxLength:"2000" description:"Begins with https:// or http://. Weir never opens it"`
	Title   string `json:"title,omitempty" maxLength:"200" description:"What people read instead of the address"`
	Webhook string `json:"webhook,omitempty" maxLength:"64" description:"Id of a webhook of the organization that is notified when the group is resolved, reopened or regresses, as GET /v1/organizations/{organization}/webhooks has it. Left out: none. If it is deleted later, the link stays and nothing is notified"`
}

type linkBody struct {
	ID string `json:"id" maxLength:"64"`
	newLinkBody
}

type linkListBody struct {
	Items []linkBody `json:"items" maxItems:"20"`
	httpapi.OnePage
}

func showLink(l grouping.Link) linkBody {
	return linkBody{l.ID, newLinkBody{l.URL, l.Title, l.Webhook}}
}

func showLinks(of postgres.Group) linkListBody {
	return linkListBody{Items: itemsOf(of.State.Links, showLink)}
}

func (l linkRoutes) list(c *call) (any, error) {
	return as(showLinks)(l.groups.Find(c.ctx(), c.who, c.param("group")))
}

func (l linkRoutes) add(c *call, body newLinkBody) (any, error) {
	c.status = http.StatusCreated
	link := grouping.Link{URL: body.URL, Title: body.Title, Webhook: body.Webhook}
	_, added, err := l.links.Add(c.ctx(), c.request, c.param("group"), link)
	return showLink(added), err
}

func (l linkRoutes) remove(c *call) (any, error) {
	return as(showLinks)(l.links.Remove(c.ctx(), c.request, c.param("group"), c.param("link")))
}
