package keys

import (
	_ "embed"
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

// OpenAPI describes the routes of the room.
//
//go:embed openapi.json
var OpenAPI []byte

// An API serves API keys to service tokens.
type API struct {
	*api.Kit
	service *Service
}

// NewAPI returns the API of a service.
func NewAPI(kit *api.Kit, service *Service) API { return API{kit, service} }

// Mount adds the routes to router.
func (a API) Mount(admin chi.Router) {
	admin.Post("/v1/api-keys", httpapi.Handle(a.create))
	admin.Get("/v1/api-keys", httpapi.Handle(a.list))
	admin.Get("/v1/api-keys/{id}", httpapi.Handle(a.get))
	admin.Patch("/v1/api-keys/{id}", httpapi.Handle(a.change))
	admin.Post("/v1/api-keys/{id}/rotate", httpapi.Handle(a.rotate))
	admin.Post("/v1/api-keys/{id}/revoke", httpapi.Handle(a.revoke))
}

type keyJSON struct {
	ID            string     `json:"id"`
	Key           string     `json:"key,omitempty"` // in the answer to its creation only
	Prefix        string     `json:"prefix"`        // beginning of the key
	Last4         string     `json:"last4"`         // end of the key
	Project       string     `json:"project"`
	Organization  string     `json:"organization"`
	Environment   string     `json:"environment"`
	Access        string     `json:"access"`
	Name          string     `json:"name"`
	State         string     `json:"state"`
	CreatedAt     time.Time  `json:"created_at"`
	ExpiresAt     *time.Time `json:"expires_at"`
	RevokedAt     *time.Time `json:"revoked_at"`
	RevokedReason *string    `json:"revoked_reason"`

	RatePerMinute *int               `json:"rate_per_minute"` // null: no limit of its own
	CreatedBy     string             `json:"created_by"`
	Replaces      *string            `json:"replaces"` // id of the replaced key
	RotatedTo     *string            `json:"rotated_to"`
	RotatedAt     *time.Time         `json:"rotated_at"`
	Exposures     []tenants.Exposure `json:"exposures"`
	Usage         usageJSON          `json:"usage"`
	RecentUsers   *[]userJSON        `json:"recent_users,omitempty"` // in the answer about one key only
}

// usageJSON is a key's published use, some seconds late.
type usageJSON struct {
	Accepted            int64      `json:"accepted"`
	Rejected            int64      `json:"rejected"`
	Refused             int64      `json:"refused"`
	Read                int64      `json:"read"`
	SinceRotation       *sinceJSON `json:"since_rotation"` // null: not rotated
	FirstEventAt        *time.Time `json:"first_event_at"`
	LastUsedAt          *time.Time `json:"last_used_at"`
	LastUsedFromAddress string     `json:"last_used_from_address"`
	LastUsedByClient    string     `json:"last_used_by_client"`
}

type sinceJSON struct {
	Accepted int64 `json:"accepted"`
	Rejected int64 `json:"rejected"`
	Read     int64 `json:"read"`
}

type userJSON struct {
	Address    string    `json:"address"`
	Client     string    `json:"client"`
	LastUsedAt time.Time `json:"last_used_at"`
}

func showUsage(k Listed) usageJSON {
	shown := usageJSON{
		Accepted: k.Accepted, Rejected: k.Rejected, Refused: k.Refused, Read: k.Read, FirstEventAt: api.Optional(k.FirstAcceptedAt),
		LastUsedAt: api.Optional(k.LastUsedAt), LastUsedFromAddress: k.Address, LastUsedByClient: k.Client,
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
		CreatedAt: k.IssuedAt.UTC(), ExpiresAt: api.Optional(k.ExpiresAt),
		RevokedAt: api.Optional(k.Revocation.At), RevokedReason: api.Reason(k.Revocation), RatePerMinute: api.OrNull(k.RatePerMinute),
		CreatedBy: k.CreatedBy, Replaces: api.OrNull(k.Replaces), RotatedTo: api.OrNull(k.RotatedTo), RotatedAt: api.Optional(k.RotatedAt),
		Exposures: k.Exposures, Usage: showUsage(k),
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

func (a API) change(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name          *string         `json:"name"`
		RatePerMinute *int            `json:"rate_per_minute"`
		Access        *tenants.Access `json:"access"`
	}
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if _, err := a.service.Change(r.Context(), request, id, Change(body)); err != nil {
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

func readNew(w http.ResponseWriter, r *http.Request) (wanted tenants.IssueAPIKey, err error) {
	var body struct {
		Project     string              `json:"project"`
		Environment tenants.Environment `json:"environment"`
		Name        string              `json:"name"`
		ExpiresAt   *string             `json:"expires_at"`

		RatePerMinute int             `json:"rate_per_minute"`
		Access        *tenants.Access `json:"access"`
	}
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return wanted, err
	}
	wanted = tenants.IssueAPIKey{
		Project: body.Project, Environment: body.Environment, Name: body.Name, RatePerMinute: body.RatePerMinute,
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

func (a API) list(w http.ResponseWriter, r *http.Request) error {
	project, organization := r.URL.Query().Get("project"), api.OrganizationOf(r)
	if project == "" && organization == tenants.Installation {
		return api.MissingParameter("project")
	}
	after, limit, err := api.PageOf(r, "project", "organization")
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
