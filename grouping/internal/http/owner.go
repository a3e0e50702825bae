package http

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

func (a *API) ownerOperations() []openapi.Operation {
	read := map[int]string{http.StatusNotFound: "There is no such project in the key's organization"}
	changed := map[int]string{
		http.StatusNotFound: read[http.StatusNotFound], http.StatusForbidden: "forbidden: the key does not read the whole organization (access full)",
	}
	const path = "/v1/projects/{project}/error-owners"
	return []openapi.Operation{
		{
			Route: "GET " + path, Handle: a.owners, ID: "getErrorOwners", Summary: "The rules about who looks after new error groups of a project",
			Query: struct{}{}, Answer: openapi.Answer{Type: ownersBody{}, Description: "The rules"}, Problems: read,
		},
		{
			Route: "PUT " + path, Handle: a.setOwners, ID: "setErrorOwners", Summary: "Say who looks after new error groups of a project",
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
			Route: "POST " + path + "/apply", Handle: a.applyOwners, ID: "applyErrorOwners",
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
	Assignee    string `json:"assignee" required:"true" minLength:"1" maxLength:"100" description:"Id of a member, or a label such as that of a team"`
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
	body := ownersBody{Rules: []ownerBody{}, Since: timeOrNull(o.Since), Actor: orNull(o.By)}
	for _, rule := range o.Rules {
		body.Rules = append(body.Rules, ownerBody(rule))
	}
	return body
}

func (a *API) owners(w http.ResponseWriter, r *http.Request) error {
	project, err := a.projectOf(r)
	if err != nil {
		return err
	}
	versions, err := a.Service.Owners(r.Context(), identity.FromContext(r.Context()), project)
	if err != nil {
		return AlertProblem(err, project, "")
	}
	var last postgres.OwnerRules
	if len(versions) > 0 {
		last = versions[0]
	}
	httpapi.WriteJSON(w, http.StatusOK, newOwnersBody(last))
	return nil
}

func (a *API) setOwners(w http.ResponseWriter, r *http.Request) error {
	request, project, err := a.changing(r)
	if err != nil {
		return err
	}
	var body setOwnersBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	var rules grouping.Owners
	for _, rule := range body.Rules {
		rules = append(rules, grouping.OwnerRule(rule))
	}
	set, err := a.Service.SetOwners(r.Context(), request, project, rules, body.IfSince)
	if err != nil {
		return AlertProblem(err, project, "")
	}
	httpapi.WriteJSON(w, http.StatusOK, newOwnersBody(set))
	return nil
}

func (a *API) applyOwners(w http.ResponseWriter, r *http.Request) error {
	request, project, err := a.changing(r)
	if err != nil {
		return err
	}
	var after postgres.GroupCursor
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &after); err != nil {
			return err
		}
	}
	done, err := a.Service.ApplyOwners(r.Context(), request, chi.URLParam(r, "project"), after)
	if err != nil {
		return AlertProblem(err, project, "")
	}
	body := appliedBody{Assigned: done.Assigned, Looked: done.Looked}
	if done.Next != nil {
		next := httpapi.EncodeCursor(r, done.Next)
		body.NextCursor = &next
	}
	httpapi.WriteJSON(w, http.StatusOK, body)
	return nil
}
