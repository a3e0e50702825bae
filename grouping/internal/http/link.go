package http

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

func (a *API) linkOperations() []openapi.Operation {
	const path = "/v1/error-groups/{group}/links"
	return []openapi.Operation{
		{
			Route: "GET " + path, Handle: a.links, ID: "listErrorGroupLinks", Summary: "What an error group is linked to, such as tickets",
			Query: struct{}{}, Answer: openapi.Answer{Type: linkListBody{}, Description: "All links, in the order in which they came"},
			Problems: map[int]string{http.StatusNotFound: refused[http.StatusNotFound]},
		},
		{
			Route: "POST " + path, Handle: a.addLink, ID: "addErrorGroupLink", Summary: "Link an error group to a ticket or the like",
			Description: "A link to the same address is replaced. Facts about the group have the addresses of its links, and the webhook of a link is told " +
				"when the group is resolved, reopened or regresses, whether or not it asks for these events.",
			Headers: idempotent{}, Query: struct{}{}, Body: openapi.Body{Type: newLinkBody{}},
			Answer: openapi.Answer{Status: http.StatusCreated, Type: linkBody{}, Description: "The link"}, Problems: refused,
		},
		{
			Route: "DELETE " + path + "/{link}", Handle: a.removeLink, ID: "removeErrorGroupLink", Summary: "Remove a link of an error group",
			Description: "A link that is gone already stays so.", Headers: idempotent{}, Query: struct{}{},
			Answer: openapi.Answer{Type: linkListBody{}, Description: "The links that are left"}, Problems: refused,
		},
	}
}

type newLinkBody struct {
	URL     string `json:"url" required:"true" maxLength:"2000" description:"Begins with https:// or http://. Weir never opens it"`
	Title   string `json:"title,omitempty" maxLength:"200" description:"What people read instead of the address"`
	Webhook string `json:"webhook,omitempty" maxLength:"64" description:"Id of a webhook of the organization that is told when the group is resolved, reopened or regresses. Left out: none"`
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

func showLinks(of grouping.State) linkListBody {
	body := linkListBody{Items: []linkBody{}}
	for _, link := range of.Links {
		body.Items = append(body.Items, showLink(link))
	}
	return body
}

func (a *API) links(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "group")
	found, err := a.Service.Find(r.Context(), identity.FromContext(r.Context()), id)
	if err != nil {
		return notFound(err, id)
	}
	httpapi.WriteJSON(w, http.StatusOK, showLinks(found.State))
	return nil
}

func (a *API) addLink(w http.ResponseWriter, r *http.Request) error {
	request, err := requestOf(r)
	if err != nil {
		return err
	}
	var body newLinkBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	id := chi.URLParam(r, "group")
	_, made, err := a.Service.AddLink(r.Context(), request, id, grouping.Link{URL: body.URL, Title: body.Title, Webhook: body.Webhook})
	if err != nil {
		return notFound(Refusal(err), id)
	}
	httpapi.WriteJSON(w, http.StatusCreated, showLink(made))
	return nil
}

func (a *API) removeLink(w http.ResponseWriter, r *http.Request) error {
	request, err := requestOf(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "group")
	left, err := a.Service.RemoveLink(r.Context(), request, id, chi.URLParam(r, "link"))
	if err != nil {
		return notFound(Refusal(err), id)
	}
	httpapi.WriteJSON(w, http.StatusOK, showLinks(left.State))
	return nil
}
