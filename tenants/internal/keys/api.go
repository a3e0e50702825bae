package keys

import (
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

// An API serves API keys to service tokens.
type API struct {
	*api.Kit
	service *Service
}

// NewAPI returns the API of a service.
func NewAPI(kit *api.Kit, service *Service) API { return API{kit, service} }

// Operations are the routes.
func (a API) Operations() []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/api-keys", Handle: a.create, ID: "createAPIKey",
			Summary: "Issue an API key of a project. It is in force when the answer comes",
			Headers: api.Creation{},
			Body:    openapi.Body{Type: newKeyBody{}},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: keyJSON{}, Description: "Issued"},
			Problems: map[int]string{
				http.StatusNotFound: api.Unknown,
				http.StatusConflict: "The same request was answered before, with a secret that is not kept; or " + api.LimitReached,
			},
		},
		{
			Route: "GET /v1/api-keys", Handle: a.list, ID: "listAPIKeys",
			Summary:  "The API keys of a project, or of all projects of an organization",
			Query:    keysQuery{},
			Answer:   openapi.Answer{Type: httpapi.List[keyJSON]{}, Description: "A page, from old to new"},
			Problems: map[int]string{http.StatusNotFound: api.Unknown},
		},
		{
			Route: "GET /v1/api-keys/{id}", Handle: a.get, ID: "getAPIKey",
			Summary: "One API key, and who has used it lately",
			Answer:  openapi.Answer{Type: keyJSON{}, Description: "The key's state"},
		},
		{
			Route: "PATCH /v1/api-keys/{id}", Handle: a.change, ID: "changeAPIKey",
			Summary:  "Change the name, limit or access of an API key. It is in force when the answer comes",
			Body:     openapi.Body{Type: changeKeyBody{}},
			Answer:   openapi.Answer{Type: keyJSON{}, Description: "The key's state"},
			Problems: map[int]string{http.StatusConflict: "The key has ended (api_key_revoked, api_key_expired)"},
		},
		{
			Route: "POST /v1/api-keys/{id}/rotate", Handle: a.rotate, ID: "rotateAPIKey",
			Summary: "Put a new key in the place of an API key, which goes on for a while and never beyond its own end. The new one is " +
				"for the same project and environment, with the same name and limit, and lasts as long as the old one did when it " +
				"was issued",
			Headers: api.Creation{},
			Body:    openapi.Body{Type: overlapBody{}, Optional: true},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: rotationJSON{}, Description: "Rotated: the new key, and the old one as `rotated`"},
			Problems: map[int]string{
				http.StatusConflict: "The key has ended (api_key_revoked, api_key_expired), was rotated already (api_key_rotated), " +
					"or the same request was answered before with a secret that is not kept (secret_shown_once); or " + api.LimitReached,
			},
		},
		{
			Route: "POST /v1/api-keys/{id}/revoke", Handle: a.revoke, ID: "revokeAPIKey",
			Summary: "Revoke an API key permanently, in every replica within a second, or once the broker is back. Again: changes nothing",
			Body:    openapi.Body{Type: api.ReasonBody{}, Optional: true},
			Answer:  openapi.Answer{Type: keyJSON{}, Description: "The key's state"},
		},
	}
}

type keyJSON struct {
	ID            string     `json:"id" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Key           string     `json:"key,omitempty" pattern:"^weir_[0-9a-f]{48}$" description:"In the answer to its creation only"`
	Prefix        string     `json:"prefix" description:"How the key begins"`
	Last4         string     `json:"last4" description:"How the key ends"`
	Project       string     `json:"project" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Organization  string     `json:"organization" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Environment   string     `json:"environment" enum:"prod,staging,dev"`
	Access        string     `json:"access" enum:"full,project,write" description:"What the key may read: full = logs and errors of the whole organization, project = those of its own project alone, write = nothing. Every key may send logs"`
	Name          string     `json:"name" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	State         string     `json:"state" enum:"active,expired,revoked"`
	CreatedAt     time.Time  `json:"created_at"`
	ExpiresAt     *time.Time `json:"expires_at"`
	RevokedAt     *time.Time `json:"revoked_at"`
	RevokedReason *string    `json:"revoked_reason"`

	Lenient       bool               `json:"lenient" description:"Its entries are normalized as with Prefer: handling=lenient, unless a request prefers otherwise"`
	Origins       []string           `json:"origins" description:"Of the web pages that use the key; none: programs do"`
	RatePerMinute *int               `json:"rate_per_minute" description:"Requests per minute; null: no limit of its own"`
	CreatedBy     string             `json:"created_by" description:"Name of the member, or id of the service token, who asked for it"`
	Replaces      *string            `json:"replaces" description:"Id of the key whose place it takes"`
	RotatedTo     *string            `json:"rotated_to" description:"Id of the key that takes its place"`
	RotatedAt     *time.Time         `json:"rotated_at"`
	Exposures     []tenants.Exposure `json:"exposures" description:"How others may have got the key, oldest first"`
	Usage         usageJSON          `json:"usage" description:"As far as ingest has told: some seconds late. A process that dies takes a few seconds of counts with it"`
	RecentUsers   *[]userJSON        `json:"recent_users,omitempty" description:"In the answer about one key only: who has used it lately, the last one first"`
}

// usageJSON is a key's published use, some seconds late.
type usageJSON struct {
	Accepted            int64      `json:"accepted" description:"Requests whose entries were taken in"`
	Rejected            int64      `json:"rejected" description:"Requests that failed for another reason than the key"`
	Refused             int64      `json:"refused" description:"Requests that failed because the key had ended"`
	Read                int64      `json:"read" description:"Requests that were let in to read"`
	SinceRotation       *sinceJSON `json:"since_rotation"` // null: not rotated
	FirstEventAt        *time.Time `json:"first_event_at"`
	LastUsedAt          *time.Time `json:"last_used_at"`
	LastUsedFromAddress string     `json:"last_used_from_address"`
	LastUsedByClient    string     `json:"last_used_by_client"`
}

type sinceJSON struct {
	Accepted int64 `json:"accepted"`
	Rejected int64 `json:"rejected"`
	Read     int64 `json:"read" description:"The same of reads"`
}

type userJSON struct {
	Address    string    `json:"address"`
	Client     string    `json:"client"`
	LastUsedAt time.Time `json:"last_used_at"`
}

func showUsage(k Listed) usageJSON {
	shown := usageJSON{
		Accepted: k.Accepted, Rejected: k.Rejected, Refused: k.Refused, Read: k.Read, FirstEventAt: httpapi.TimeOrNull(k.FirstAcceptedAt),
		LastUsedAt: httpapi.TimeOrNull(k.LastUsedAt), LastUsedFromAddress: k.Address, LastUsedByClient: k.Client,
	}
	if k.RotatedTo != "" {
		shown.SinceRotation = &sinceJSON{k.AcceptedSince, k.RejectedSince, k.ReadSince}
	}
	return shown
}

func (a API) show(k Listed) keyJSON {
	return keyJSON{
		ID: k.ID, Prefix: tenants.APIKeyPrefix + k.Digest.First, Last4: k.Digest.Last, Project: k.Project,
		Organization: k.Organization, Environment: string(k.Environment), Access: string(k.Access), Name: k.Name, State: string(k.State(a.Clock())),
		CreatedAt: k.IssuedAt.UTC(), ExpiresAt: httpapi.TimeOrNull(k.ExpiresAt),
		RevokedAt: httpapi.TimeOrNull(k.Revocation.At), RevokedReason: api.Reason(k.Revocation), RatePerMinute: httpapi.OrNull(k.RatePerMinute),
		CreatedBy: k.CreatedBy, Replaces: httpapi.OrNull(k.Replaces), RotatedTo: httpapi.OrNull(k.RotatedTo), RotatedAt: httpapi.TimeOrNull(k.RotatedAt),
		Exposures: k.Exposures, Usage: showUsage(k), Lenient: k.Lenient, Origins: k.Origins,
	}
}

// key is a key that the caller may access, as JSON.
func (a API) key(r *http.Request, id string) (keyJSON, error) {
	key, err := a.service.Key(r.Context(), api.CallerOf(r), id)
	if err != nil {
		return keyJSON{}, api.ProblemOf(err, "API key", id)
	}
	return a.show(key), nil
}

func (a API) get(w http.ResponseWriter, r *http.Request) error {
	shown, err := a.key(r, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	users, err := a.service.Users(r.Context(), api.CallerOf(r), shown.ID)
	if err != nil {
		return err
	}
	recent := make([]userJSON, len(users))
	for i, user := range users {
		recent[i] = userJSON{user.Address, user.Client, user.LastUsedAt.UTC()}
	}
	shown.RecentUsers = &recent
	httpapi.WriteJSON(w, http.StatusOK, shown)
	return nil
}

type changeKeyBody struct {
	Name          *string         `json:"name" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	RatePerMinute *int            `json:"rate_per_minute" minimum:"0" description:"Requests per minute, at most the organization's; 0: no limit of its own"`
	Access        *tenants.Access `json:"access" enum:"full,project,write" description:"What the key may read: full = logs and errors of the whole organization, project = those of its own project alone, write = nothing. Every key may send logs"`
	Lenient       *bool           `json:"lenient" description:"Normalize its entries as with Prefer: handling=lenient, unless a request prefers otherwise"`
	Origins       *[]string       `json:"origins" maxItems:"20" description:"Of the web pages that use the key, such as https://shop.example; empty: programs use it"`
}

func (a API) change(w http.ResponseWriter, r *http.Request) error {
	var body changeKeyBody
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if _, err := a.service.Change(r.Context(), request, id, tenants.KeySettings(body)); err != nil {
		return api.ProblemOf(err, "API key", id)
	}
	return a.answer(w, r, http.StatusOK, id)
}

// answer responds with a key as it is now.
func (a API) answer(w http.ResponseWriter, r *http.Request, status int, id string) error {
	shown, err := a.key(r, id)
	if err == nil {
		httpapi.WriteJSON(w, status, shown)
	}
	return err
}

func (a API) create(w http.ResponseWriter, r *http.Request) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	wanted, err := readNew(w, r)
	if err != nil {
		return err
	}
	key, secret, err := a.service.Issue(r.Context(), request, wanted)
	if err != nil {
		return api.ProblemOf(err, "project", wanted.Project)
	}
	shown, err := a.key(r, key.ID)
	if err != nil {
		return err
	}
	shown.Key = secret.Reveal()
	httpapi.WriteJSON(w, http.StatusCreated, shown)
	return nil
}

type newKeyBody struct {
	Project     string              `json:"project" required:"true" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Environment tenants.Environment `json:"environment" required:"true" enum:"prod,staging,dev"`
	Name        string              `json:"name" required:"true" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	ExpiresAt   *string             `json:"expires_at" nullable:"true" format:"date-time" description:"In the future; null or left out: never"`

	RatePerMinute int             `json:"rate_per_minute" minimum:"0" description:"Requests per minute, at most the organization's; 0: no limit of its own"`
	Access        *tenants.Access `json:"access" enum:"full,project,write" description:"What the key may read: full = logs and errors of the whole organization, project = those of its own project alone, write = nothing. Every key may send logs. Left out: full"`
	Lenient       bool            `json:"lenient" description:"Normalize its entries as with Prefer: handling=lenient, unless a request prefers otherwise"`
	Origins       []string        `json:"origins" maxItems:"20" description:"Of the web pages that use the key, such as https://shop.example. It needs access write and a rate_per_minute, as everybody who opens such a page can read it; its entries are marked with metadata.untrusted_client. Left out: programs use it"`
}

func readNew(w http.ResponseWriter, r *http.Request) (wanted tenants.IssueAPIKey, err error) {
	var body newKeyBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return wanted, err
	}
	wanted = tenants.IssueAPIKey{
		Project: body.Project, Environment: body.Environment, Name: body.Name, RatePerMinute: body.RatePerMinute,
		Sending: tenants.Sending{Lenient: body.Lenient, Origins: body.Origins},
	}
	if body.Access != nil {
		if wanted.Access = *body.Access; wanted.Access == "" {
			return wanted, httpapi.Invalid("/access", httpapi.CodeInvalidRequest, "access is empty.", "Use full, project or write, or leave it out for full.")
		}
	}
	if body.ExpiresAt != nil {
		wanted.ExpiresAt, err = readTime("expires_at", *body.ExpiresAt)
	}
	return wanted, err
}

// readTime parses an RFC 3339 time, in UTC and to the microsecond.
func readTime(field, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.IsZero() {
		return time.Time{}, httpapi.Invalid("/"+field, httpapi.CodeInvalidRequest, fmt.Sprintf("%s is %q.", field, text),
			"Send an RFC 3339 time such as 2027-01-31T00:00:00Z.")
	}
	return at.UTC().Truncate(time.Microsecond), nil
}

// find finds the keys of a project, or of an organization if none is named.
func (a API) find(r *http.Request, organization, project string, after query.Position, limit int) ([]Listed, error) {
	if project == "" {
		found, err := a.service.OfOrganization(r.Context(), api.CallerOf(r), organization, after, limit)
		return found, api.ProblemOf(err, "organization", organization)
	}
	found, err := a.service.OfProject(r.Context(), api.CallerOf(r), project, after, limit)
	return found, api.ProblemOf(err, "project", project)
}

type keysQuery struct {
	Project      string `query:"project" minLength:"1" maxLength:"64" pattern:"^[A-Za-z0-9_-]+$" description:"Those of this project"`
	Organization string `query:"organization" maxLength:"64" description:"Where no project is named. Left out: the one that the token is bound to"`
	httpapi.Page
}

func (a API) list(w http.ResponseWriter, r *http.Request) error {
	project, organization := r.URL.Query().Get("project"), api.OrganizationOf(r)
	if project == "" && organization == tenants.Installation {
		return api.MissingParameter("project")
	}
	after, limit, err := api.PageOf(r)
	if err != nil {
		return err
	}
	found, err := a.find(r, organization, project, after, limit+1)
	if err != nil {
		return err
	}
	httpapi.WriteList(w, r, found, limit, a.show, placeOf)
	return nil
}

func placeOf(k Listed) query.Position { return query.Position{At: k.IssuedAt, ID: k.ID} }

func (a API) revoke(w http.ResponseWriter, r *http.Request) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	reason, err := api.ReasonOf(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if _, err := a.service.Revoke(r.Context(), request, id, reason); err != nil {
		return api.ProblemOf(err, "API key", id)
	}
	return a.answer(w, r, http.StatusOK, id)
}

// defaultOverlap is how long a rotated key still works by default.
const defaultOverlap = 24 * time.Hour

// rotationJSON is the new key, shown only here, and the replaced one.
type rotationJSON struct {
	keyJSON

	Rotated keyJSON `json:"rotated"`
}

func (a API) rotate(w http.ResponseWriter, r *http.Request) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	overlap, err := overlapOf(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	rotation, err := a.service.Rotate(r.Context(), request, id, overlap)
	if err != nil {
		return api.ProblemOf(err, "API key", id)
	}
	shown, err := a.key(r, rotation.New.ID)
	if err != nil {
		return err
	}
	rotated, err := a.key(r, rotation.Old.ID)
	if err != nil {
		return err
	}
	shown.Key = rotation.Secret.Reveal()
	httpapi.WriteJSON(w, http.StatusCreated, rotationJSON{shown, rotated})
	return nil
}

type overlapBody struct {
	Overlap *int64 `json:"overlap_seconds" minimum:"0" maximum:"604800" default:"86400" description:"How long the old key goes on"`
}

// overlapOf is the overlap in the body, which may be absent.
func overlapOf(w http.ResponseWriter, r *http.Request) (time.Duration, error) {
	var body overlapBody
	if r.ContentLength != 0 {
		if err := httpapi.ReadJSON(w, r, &body); err != nil {
			return 0, err
		}
	}
	if body.Overlap == nil {
		return defaultOverlap, nil
	}
	longest := int64(tenants.MaxOverlap / time.Second)
	return time.Duration(min(max(*body.Overlap, -1), longest+1)) * time.Second, nil // out of range stays so, without an overflow
}
