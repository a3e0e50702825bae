package subject

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weirlog/weir/deploy/client"
)

// A Tenant is an organization of tier Scale with one project,
// its key and its billing token.
type Tenant struct {
	Organization, Project, Key, Billing string
}

// NewTenants creates n tenants through the API and waits until their
// posts are admitted.
func NewTenants(ctx context.Context, api *client.Client, operator, name string, n int) ([]Tenant, error) {
	var made []Tenant
	for i := range n {
		t, err := newTenant(ctx, api, operator, fmt.Sprintf("%s %d", name, i))
		if err != nil {
			return nil, fmt.Errorf("cannot create an organization: %w", err)
		}
		made = append(made, t)
	}
	for _, t := range made {
		if err := t.awaitAdmission(ctx, api); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func newTenant(ctx context.Context, api *client.Client, operator, name string) (t Tenant, err error) {
	organization, err := api.CreateOrganization(ctx, operator, name, "scale")
	if err != nil {
		return t, err
	}
	project, err := api.CreateProject(ctx, operator, organization.ID, name)
	if err != nil {
		return t, err
	}
	key, err := api.CreateAPIKey(ctx, operator, project.ID, "prod", name)
	if err != nil {
		return t, err
	}
	token, err := api.CreateServiceToken(ctx, operator, organization.ID, name, "billing:read")
	return Tenant{organization.ID, project.ID, key.Key, token.Token}, err
}

// awaitAdmission posts an empty batch, which costs nothing, until it is
// refused as empty.
func (t Tenant) awaitAdmission(ctx context.Context, api *client.Client) error {
	for {
		answer, err := api.Call(ctx, client.Batch{Body: []byte(`{"logs":[]}`)}.Request(t.Key))
		if err == nil && answer.Status == http.StatusBadRequest {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a new organization is not admitted: answered %d, %w", answer.Status, ctx.Err())
		case <-time.After(poll):
		}
	}
}

// NewIdle creates an organization with a project and a key, for nothing.
func NewIdle(ctx context.Context, api *client.Client, operator, name string) error {
	organization, err := api.CreateOrganization(ctx, operator, name, "indie")
	if err != nil {
		return err
	}
	project, err := api.CreateProject(ctx, operator, organization.ID, name)
	if err != nil {
		return err
	}
	_, err = api.CreateAPIKey(ctx, operator, project.ID, "prod", name)
	return err
}
