package http

import (
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

type apiKeyJSON struct {
	ID            string     `json:"id"`
	Key           string     `json:"key,omitempty"` // in the answer to its creation only
	Prefix        string     `json:"prefix"`        // how the key begins
	Last4         string     `json:"last4"`         // how it ends
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
	Replaces      *string            `json:"replaces"` // id of the key whose place it takes
	RotatedTo     *string            `json:"rotated_to"`
	RotatedAt     *time.Time         `json:"rotated_at"`
	Exposures     []tenants.Exposure `json:"exposures"`
	Usage         apiKeyUsageJSON    `json:"usage"`
	RecentUsers   *[]apiKeyUserJSON  `json:"recent_users,omitempty"` // in the answer about one key only
}

// apiKeyUsageJSON is how a key was used, as far as others have told: some seconds late.
type apiKeyUsageJSON struct {
	Accepted            int64      `json:"accepted"`
	Rejected            int64      `json:"rejected"`
	Refused             int64      `json:"refused"`
	Read                int64      `json:"read"`
	SinceRotation       *sinceJSON `json:"since_rotation"` // null: it was not rotated
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

type apiKeyUserJSON struct {
	Address    string    `json:"address"`
	Client     string    `json:"client"`
	LastUsedAt time.Time `json:"last_used_at"`
}

func showUsage(k postgres.ListedAPIKey) apiKeyUsageJSON {
	shown := apiKeyUsageJSON{
		Accepted: k.Accepted, Rejected: k.Rejected, Refused: k.Refused, Read: k.Read, FirstEventAt: optional(k.FirstAcceptedAt),
		LastUsedAt: optional(k.LastUsedAt), LastUsedFromAddress: k.Address, LastUsedByClient: k.Client,
	}
	if k.RotatedTo != "" {
		shown.SinceRotation = &sinceJSON{k.AcceptedSince, k.RejectedSince, k.ReadSince}
	}
	return shown
}

func (a *API) showAPIKey(k postgres.ListedAPIKey) apiKeyJSON {
	return apiKeyJSON{
		ID: k.ID, Prefix: tenants.APIKeyPrefix + k.Digest.First, Last4: k.Digest.Last, Project: k.Project,
		Organization: k.Organization, Environment: string(k.Environment), Access: string(k.Access), Name: k.Name, State: string(k.State(a.clock())),
		CreatedAt: k.IssuedAt.UTC(), ExpiresAt: optional(k.ExpiresAt),
		RevokedAt: optional(k.Revocation.At), RevokedReason: reasonJSON(k.Revocation), RatePerMinute: given(k.RatePerMinute),
		CreatedBy: k.CreatedBy, Replaces: given(k.Replaces), RotatedTo: given(k.RotatedTo), RotatedAt: optional(k.RotatedAt),
		Exposures: k.Exposures, Usage: showUsage(k),
	}
}

// given is null for the zero value.
func given[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// apiKey is a key that the caller reaches, as it is told.
func (a *API) apiKey(r *http.Request, id string) (apiKeyJSON, error) {
	key, err := a.registrar.APIKey(r.Context(), callerOf(r), id)
	if err != nil {
		return apiKeyJSON{}, problemOf(err, "API key", id)
	}
	return a.showAPIKey(key), nil
}

func (a *API) getAPIKey(w http.ResponseWriter, r *http.Request) error {
	shown, err := a.apiKey(r, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	users, err := a.registrar.KeyUsers(r.Context(), callerOf(r), shown.ID)
	if err != nil {
		return err
	}
	recent := make([]apiKeyUserJSON, len(users))
	for i, user := range users {
		recent[i] = apiKeyUserJSON{user.Address, user.Client, user.LastUsedAt.UTC()}
	}
	shown.RecentUsers = &recent
	httpapi.WriteJSON(w, http.StatusOK, shown)
	return nil
}

func (a *API) changeAPIKey(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name          *string         `json:"name"`
		RatePerMinute *int            `json:"rate_per_minute"`
		Access        *tenants.Access `json:"access"`
	}
	request, err := a.requestWith(w, r, &body)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if _, err := a.registrar.ChangeAPIKey(r.Context(), request, id, registrar.KeyChange(body)); err != nil {
		return problemOf(err, "API key", id)
	}
	return a.answerAPIKey(w, r, http.StatusOK, id)
}

// answerAPIKey answers with a key as it is now.
func (a *API) answerAPIKey(w http.ResponseWriter, r *http.Request, status int, id string) error {
	shown, err := a.apiKey(r, id)
	if err == nil {
		httpapi.WriteJSON(w, status, shown)
	}
	return err
}

// reasonJSON is null for what is not revoked.
func reasonJSON(revocation tenants.Revocation) *string {
	if revocation.At.IsZero() {
		return nil
	}
	return &revocation.Reason
}

func (a *API) createAPIKey(w http.ResponseWriter, r *http.Request) error {
	request, err := a.requestOf(r)
	if err != nil {
		return err
	}
	wanted, err := readNewAPIKey(w, r)
	if err != nil {
		return err
	}
	key, secret, err := a.registrar.IssueAPIKey(r.Context(), request, wanted)
	if err != nil {
		return problemOf(err, "project", wanted.Project)
	}
	shown, err := a.apiKey(r, key.ID)
	if err != nil {
		return err
	}
	shown.Key = secret.Reveal()
	httpapi.WriteJSON(w, http.StatusCreated, shown)
	return nil
}

func readNewAPIKey(w http.ResponseWriter, r *http.Request) (wanted registrar.NewAPIKey, err error) {
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
	wanted = registrar.NewAPIKey{
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

// readTime reads an RFC 3339 time; it is kept in UTC and to the microsecond.
func readTime(field, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.IsZero() {
		return time.Time{}, httpapi.Invalid("/"+field, httpapi.CodeInvalidRequest, fmt.Sprintf("%s is %q.", field, text),
			"Send an RFC 3339 time such as 2027-01-31T00:00:00Z.")
	}
	return at.UTC().Truncate(time.Microsecond), nil
}

// findAPIKeys finds the keys of a project, or where none is named, of an organization.
func (a *API) findAPIKeys(r *http.Request, organization, project string, after postgres.Position, limit int) ([]postgres.ListedAPIKey, error) {
	if project == "" {
		found, err := a.registrar.APIKeysOf(r.Context(), callerOf(r), organization, after, limit)
		return found, problemOf(err, "organization", organization)
	}
	found, err := a.registrar.APIKeys(r.Context(), callerOf(r), project, after, limit)
	return found, problemOf(err, "project", project)
}

func (a *API) listAPIKeys(w http.ResponseWriter, r *http.Request) error {
	project, organization := r.URL.Query().Get("project"), organizationOf(r)
	if project == "" && organization == tenants.Installation {
		return missing("project")
	}
	after, limit, err := pageOf(r, "project", "organization")
	if err != nil {
		return err
	}
	found, err := a.findAPIKeys(r, organization, project, after, limit+1)
	if err != nil {
		return err
	}
	httpapi.WriteList(w, r, found, limit, a.showAPIKey, func(k postgres.ListedAPIKey) postgres.Position {
		return postgres.Position{At: k.IssuedAt, ID: k.ID}
	})
	return nil
}

func (a *API) revokeAPIKey(w http.ResponseWriter, r *http.Request) error {
	request, err := a.requestOf(r)
	if err != nil {
		return err
	}
	reason, err := reasonOf(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if _, err := a.registrar.RevokeAPIKey(r.Context(), request, id, reason); err != nil {
		return problemOf(err, "API key", id)
	}
	return a.answerAPIKey(w, r, http.StatusOK, id)
}
