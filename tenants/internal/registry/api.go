package registry

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// An API serves organizations, projects, service tokens and
// security policies to service tokens.
type API struct {
	*api.Kit
	Services
}

// NewAPI returns the API of some services.
func NewAPI(kit *api.Kit, services Services) API { return API{kit, services} }

// Operations are the routes.
func (a API) Operations() []openapi.Operation {
	return slices.Concat(organizationOperations(a), projectOperations(a), deletionOperations(a), securityPolicyOperations(a), serviceTokenOperations(a))
}

func organizationOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/organizations", Handle: api.CreateHandler(a.Kit, a.createOrganization), ID: "createOrganization",
			Summary: "Create an organization (operators only)",
			Headers: api.Creation{},
			Body:    openapi.Body{Type: newOrganizationBody{}},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: organizationJSON{}},
		},
		{
			Route: "GET /v1/organizations", Handle: a.listOrganizations, ID: "listOrganizations",
			Summary: "The organizations that the token may know of",
			Query:   httpapi.Page{},
			Answer:  openapi.Answer{Type: httpapi.List[organizationJSON]{}, Description: "A page, from old to new"},
		},
		{
			Route: "GET /v1/organizations/{id}", ID: "getOrganization",
			Handle:  api.ShowHandler("organization", a.Organizations.Organization, showOrganization),
			Summary: "Show an organization",
			Answer:  openapi.Answer{Type: organizationJSON{}},
		},
		{
			Route: "PATCH /v1/organizations/{id}", ID: "renameOrganization",
			Handle:  api.ChangeHandler(a.Kit, "organization", api.NameOf, a.Organizations.Rename, showOrganization),
			Summary: "Rename an organization",
			Body:    openapi.Body{Type: api.NameBody{}},
			Answer:  openapi.Answer{Type: organizationJSON{}},
		},
	}
}

type organizationJSON struct {
	ID        string    `json:"id" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Name      string    `json:"name" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	Tier      string    `json:"tier" enum:"indie,bootstrapper,compliance,scale" description:"In force now; PUT /organizations/{organization}/subscription changes it"`
	CreatedAt time.Time `json:"created_at"`
}

func showOrganization(o tenants.Organization) organizationJSON {
	return organizationJSON{ID: o.ID, Name: o.Name, Tier: string(o.Tier), CreatedAt: o.CreatedAt.UTC()}
}

type newOrganizationBody struct {
	Name string       `json:"name" required:"true" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	Tier tenants.Tier `json:"tier" required:"true" enum:"indie,bootstrapper,compliance,scale"`
}

func (a API) createOrganization(ctx context.Context, request unitofwork.Request, body newOrganizationBody) (organizationJSON, error) {
	organization, err := a.Organizations.Create(ctx, request, body.Name, body.Tier)
	return showOrganization(organization), api.ProblemOf(err, "organization", "")
}

func (a API) listOrganizations(w http.ResponseWriter, r *http.Request) error {
	after, limit, err := api.PageOf(r)
	if err != nil {
		return err
	}
	found, err := a.Organizations.List(r.Context(), api.CallerOf(r), after, limit+1)
	if err != nil {
		return err
	}
	httpapi.WriteList(w, r, found, limit, showOrganization, func(o tenants.Organization) query.Position {
		return query.Position{At: o.CreatedAt, ID: o.ID}
	})
	return nil
}

func projectOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/projects", Handle: api.CreateHandler(a.Kit, a.createProject), ID: "createProject",
			Summary: "Create a project of an organization",
			Headers: api.Creation{},
			Body:    openapi.Body{Type: newProjectBody{}},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: projectJSON{}},
			Problems: map[int]string{
				http.StatusNotFound: api.Unknown,
				http.StatusConflict: api.LimitReached,
			},
		},
		{
			Route: "GET /v1/projects", ID: "listProjects",
			Handle:   api.ListHandler("organization", api.OneOrganizationOf, a.Projects.List, showProject, placeOfProject),
			Summary:  "The projects of an organization",
			Query:    api.OrganizationQuery{},
			Answer:   openapi.Answer{Type: httpapi.List[projectJSON]{}, Description: "A page, from old to new"},
			Problems: map[int]string{http.StatusNotFound: api.Unknown},
		},
		{
			Route: "PATCH /v1/projects/{id}", ID: "renameProject",
			Handle:  api.ChangeHandler(a.Kit, "project", api.NameOf, a.Projects.Rename, showProject),
			Summary: "Rename a project",
			Body:    openapi.Body{Type: api.NameBody{}},
			Answer:  openapi.Answer{Type: projectJSON{}},
		},
	}
}

type projectJSON struct {
	ID           string    `json:"id" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Organization string    `json:"organization" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Name         string    `json:"name" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	CreatedAt    time.Time `json:"created_at"`
}

func showProject(p tenants.Project) projectJSON {
	return projectJSON{ID: p.ID, Organization: p.Organization, Name: p.Name, CreatedAt: p.CreatedAt.UTC()}
}

func placeOfProject(p tenants.Project) query.Position {
	return query.Position{At: p.CreatedAt, ID: p.ID}
}

type newProjectBody struct {
	Organization string `json:"organization" required:"true" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Name         string `json:"name" required:"true" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
}

func (a API) createProject(ctx context.Context, request unitofwork.Request, body newProjectBody) (projectJSON, error) {
	project, err := a.Projects.Create(ctx, request, body.Organization, body.Name)
	return showProject(project), api.ProblemOf(err, "organization", body.Organization)
}

func securityPolicyOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{id}/security-policy", ID: "getSecurityPolicy",
			Handle:  api.ShowHandler("organization", a.Policies.Policy, showSecurityPolicy),
			Summary: "What happens by itself to keys that somebody else may have",
			Answer:  openapi.Answer{Type: securityPolicyJSON{}, Description: "The policy"},
		},
		{
			Route: "PUT /v1/organizations/{id}/security-policy", ID: "setSecurityPolicy",
			Handle:  api.ChangeHandler(a.Kit, "organization", securityPolicyOf, a.Policies.Set, showSecurityPolicy),
			Summary: "Set the security policy, whole",
			Body:    openapi.Body{Type: newSecurityPolicyBody{}},
			Answer:  openapi.Answer{Type: securityPolicyJSON{}, Description: "The policy"},
		},
	}
}

type securityPolicyJSON struct {
	Organization  string     `json:"organization"`
	LeakedKeys    string     `json:"leaked_keys" enum:"notify,rotate,revoke" description:"What happens to a key that was found in public. It is always flagged; rotate: it ends 24 hours later, revoke: at once"`
	PlainHTTPKeys string     `json:"plain_http_keys" enum:"flag,revoke" description:"What happens to a key that arrived over plain HTTP. It is always flagged; revoke: it ends at once"`
	Passwords     string     `json:"passwords" enum:"allowed,off" description:"Whether members may sign in with passwords; off: with passkeys or by the identity provider alone. Only an operator switches it over the API"`
	SetAt         *time.Time `json:"set_at" description:"null: the default"`
}

func showSecurityPolicy(p tenants.SecurityPolicy) securityPolicyJSON {
	return securityPolicyJSON{
		Organization: p.Organization, LeakedKeys: string(p.LeakedKeys), PlainHTTPKeys: string(p.PlainHTTPKeys),
		Passwords: p.PasswordPolicy(), SetAt: httpapi.TimeOrNull(p.SetAt),
	}
}

type newSecurityPolicyBody struct {
	LeakedKeys    tenants.LeakedPolicy    `json:"leaked_keys" required:"true" enum:"notify,rotate,revoke" description:"What happens to a key that was found in public. It is always flagged; rotate: it ends 24 hours later, revoke: at once"`
	PlainHTTPKeys tenants.PlainHTTPPolicy `json:"plain_http_keys" required:"true" enum:"flag,revoke" description:"What happens to a key that arrived over plain HTTP. It is always flagged; revoke: it ends at once"`
	Passwords     string                  `json:"passwords" enum:"allowed,off" description:"Whether members may sign in with passwords; off: with passkeys or by the identity provider alone. Only an operator switches it over the API. Left out: as it is"`
}

// securityPolicyOf is the policy in the body of a request.
func securityPolicyOf(w http.ResponseWriter, r *http.Request) (NewPolicy, error) {
	var body newSecurityPolicyBody
	wanted := NewPolicy{}
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return wanted, err
	}
	wanted.LeakedKeys, wanted.PlainHTTPKeys = body.LeakedKeys, body.PlainHTTPKeys
	off, known := tenants.ParsePasswordsOff(body.Passwords)
	if wanted.PasswordsOff = off; !known {
		return wanted, httpapi.Invalid("/passwords", httpapi.CodeInvalidRequest, fmt.Sprintf("passwords is %q.", body.Passwords),
			"Use allowed or off, or leave it out to let it be as it is.")
	}
	return wanted, nil
}

func serviceTokenOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/service-tokens", Handle: api.CreateHandler(a.Kit, a.createServiceToken), ID: "createServiceToken",
			Summary: "Issue a service token, with no scope that the caller lacks unless it is an operator",
			Headers: api.Creation{},
			Body:    openapi.Body{Type: newServiceTokenBody{}},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: serviceTokenJSON{}, Description: "Issued"},
			Problems: map[int]string{
				http.StatusNotFound: api.Unknown,
				http.StatusConflict: "The same request was answered before, with a secret that is not kept; or " + api.LimitReached,
			},
		},
		{
			Route: "GET /v1/service-tokens", ID: "listServiceTokens",
			Handle:   api.ListHandler("organization", api.OrganizationOf, a.Tokens.List, showServiceToken, placeOfServiceToken),
			Summary:  "The service tokens of an organization, or of the installation",
			Query:    api.OrganizationQuery{},
			Answer:   openapi.Answer{Type: httpapi.List[serviceTokenJSON]{}, Description: "A page, from old to new"},
			Problems: map[int]string{http.StatusNotFound: api.Unknown},
		},
		{
			Route: "POST /v1/service-tokens/{id}/revoke", ID: "revokeServiceToken",
			Handle:  api.ChangeHandler(a.Kit, "service token", api.ReasonOf, a.Tokens.Revoke, showServiceToken),
			Summary: "Revoke a service token permanently, in every replica within a second, or once the broker is back. Again: changes nothing",
			Body:    openapi.Body{Type: api.ReasonBody{}, Optional: true},
			Answer:  openapi.Answer{Type: serviceTokenJSON{}, Description: "The token's state"},
		},
	}
}

type serviceTokenJSON struct {
	ID            string     `json:"id" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Token         string     `json:"token,omitempty" pattern:"^weirsvc_[0-9a-f]{48}$" description:"In the answer to its creation only"`
	Prefix        string     `json:"prefix" description:"How the token begins"`
	Last4         string     `json:"last4" description:"How the token ends"`
	Organization  string     `json:"organization" description:"Its id, or * for the installation"`
	Name          string     `json:"name" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	Scopes        []string   `json:"scopes" pattern:"^[a-z][a-z-]{0,30}:[a-z][a-z-]{0,30}$" minItems:"1" maxItems:"32"`
	State         string     `json:"state" enum:"active,revoked"`
	CreatedAt     time.Time  `json:"created_at"`
	RevokedAt     *time.Time `json:"revoked_at"`
	RevokedReason *string    `json:"revoked_reason"`
}

func showServiceToken(s tenants.ServiceToken) serviceTokenJSON {
	return serviceTokenJSON{
		ID: s.ID, Prefix: tenants.ServiceTokenPrefix + s.Digest.First, Last4: s.Digest.Last, Organization: s.Organization,
		Name: s.Name, Scopes: s.Scopes, State: string(s.State()), CreatedAt: s.IssuedAt.UTC(),
		RevokedAt: httpapi.TimeOrNull(s.Revocation.At), RevokedReason: api.Reason(s.Revocation),
	}
}

func placeOfServiceToken(s tenants.ServiceToken) query.Position {
	return query.Position{At: s.IssuedAt, ID: s.ID}
}

type newServiceTokenBody struct {
	Organization string   `json:"organization" required:"true" description:"Its id, or * for the installation (operators only)"`
	Name         string   `json:"name" required:"true" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	Scopes       []string `json:"scopes" required:"true" pattern:"^[a-z][a-z-]{0,30}:[a-z][a-z-]{0,30}$" minItems:"1" maxItems:"32"`
}

func (a API) createServiceToken(ctx context.Context, request unitofwork.Request, body newServiceTokenBody) (serviceTokenJSON, error) {
	token, secret, err := a.Tokens.Issue(ctx, request, NewToken(body))
	shown := showServiceToken(token)
	shown.Token = secret.Reveal()
	return shown, api.ProblemOf(err, "organization", body.Organization)
}

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
		ID: d.ID(), Organization: d.Organization, Project: httpapi.OrNull(d.Project), State: d.State, RequestedAt: d.RequestedAt.UTC(), BeginsAt: d.BeginsAt.UTC(),
		GoneBy: d.GoneBy.UTC(), FinishedAt: httpapi.TimeOrNull(d.FinishedAt), Removed: d.Removed,
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
