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
	Name          string     `json:"name"`
	State         string     `json:"state"`
	CreatedAt     time.Time  `json:"created_at"`
	ExpiresAt     *time.Time `json:"expires_at"`
	RevokedAt     *time.Time `json:"revoked_at"`
	RevokedReason *string    `json:"revoked_reason"`
}

func (a *API) showAPIKey(k tenants.APIKey) apiKeyJSON {
	return apiKeyJSON{
		ID: k.ID, Prefix: tenants.APIKeyPrefix + k.Imprint.First, Last4: k.Imprint.Last, Project: k.Project,
		Organization: k.Organization, Environment: string(k.Environment), Name: k.Name, State: string(k.State(a.clock())),
		CreatedAt: k.IssuedAt.UTC(), ExpiresAt: optional(k.ExpiresAt),
		RevokedAt: optional(k.Revocation.At), RevokedReason: reasonJSON(k.Revocation),
	}
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
	shown := a.showAPIKey(key)
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
	}
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return wanted, err
	}
	wanted = registrar.NewAPIKey{Project: body.Project, Environment: body.Environment, Name: body.Name}
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

func (a *API) listAPIKeys(w http.ResponseWriter, r *http.Request) error {
	project := r.URL.Query().Get("project")
	if project == "" {
		return missing("project")
	}
	after, limit, err := pageOf(r, "project")
	if err != nil {
		return err
	}
	found, err := a.registrar.APIKeys(r.Context(), callerOf(r), project, after, limit+1)
	if err != nil {
		return problemOf(err, "project", project)
	}
	listOf(w, found, limit, a.showAPIKey, func(k tenants.APIKey) postgres.Position {
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
	key, err := a.registrar.RevokeAPIKey(r.Context(), request, id, reason)
	if err != nil {
		return problemOf(err, "API key", id)
	}
	httpapi.WriteJSON(w, http.StatusOK, a.showAPIKey(key))
	return nil
}
