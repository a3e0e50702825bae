package bench

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weirlog/weir/deploy/client"
)

// A tenant is an organization of tier Scale with one project, its key and its billing token.
type tenant struct {
	organization, project, key, billing string
}

// admittedPoll is how often it is looked whether a new organization is known everywhere.
const admittedPoll = 20 * time.Millisecond

// newTenants creates n of them through the API and waits until their posts are admitted.
func newTenants(ctx context.Context, api *client.Client, operator, name string, n int) ([]tenant, error) {
	var made []tenant
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

func newTenant(ctx context.Context, api *client.Client, operator, name string) (t tenant, err error) {
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
	return tenant{organization.ID, project.ID, key.Key, token.Token}, err
}

// awaitAdmission posts an empty batch, which costs nothing, until it is refused for being empty.
func (t tenant) awaitAdmission(ctx context.Context, api *client.Client) error {
	for {
		answer, err := api.Call(ctx, client.Batch{Body: []byte(`{"logs":[]}`)}.Request(t.key))
		if err == nil && answer.Status == http.StatusBadRequest {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a new organization is not admitted: answered %d, %w", answer.Status, ctx.Err())
		case <-time.After(admittedPoll):
		}
	}
}

// consumed adds up what the ledger has charged to tenants.
func consumed(ctx context.Context, api *client.Client, tenants []tenant) (bytes int64, err error) {
	for _, t := range tenants {
		balance, err := api.Balance(ctx, t.billing, t.organization)
		if err != nil {
			return 0, err
		}
		bytes += balance.Consumed
	}
	return bytes, nil
}
