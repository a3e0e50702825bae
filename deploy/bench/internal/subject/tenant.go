package subject

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// A Tenant is an organization with one project, its key and its billing
// token.
type Tenant struct {
	Organization, Project, Key, Billing string
}

// NewTenants creates n tenants of tier Scale through the API and waits until
// their posts are admitted.
func NewTenants(ctx context.Context, api *client.Client, operator, name string, n int) ([]Tenant, error) {
	made := make([]Tenant, n)
	for i := range made {
		own := fmt.Sprintf("%s %d", name, i)
		t, err := NewTenant(ctx, api, operator, own, "scale")
		if err != nil {
			return nil, err
		}
		token, err := api.CreateServiceToken(ctx, operator, t.Organization, own, "billing:read")
		if err != nil {
			return nil, err
		}
		t.Billing = token.Token
		made[i] = t
	}
	for _, t := range made {
		if err := t.awaitAdmission(ctx, api); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// NewTenant creates a tenant without a billing token.
func NewTenant(ctx context.Context, api *client.Client, operator, name, tier string) (Tenant, error) {
	organization, err := api.CreateOrganization(ctx, operator, name, tier)
	if err != nil {
		return Tenant{}, err
	}
	key, err := NewKey(ctx, api, operator, organization.ID, name)
	return Tenant{Organization: organization.ID, Project: key.Project, Key: key.Key}, err
}

// NewKey creates a project with a key.
func NewKey(ctx context.Context, api *client.Client, token, organization, name string) (client.APIKey, error) {
	project, err := api.CreateProject(ctx, token, organization, name)
	if err != nil {
		return client.APIKey{}, err
	}
	return api.CreateAPIKey(ctx, token, project.ID, "prod", name)
}

// awaitAdmission posts an empty batch, which costs nothing, until it is
// refused as empty.
func (t Tenant) awaitAdmission(ctx context.Context, api *client.Client) error {
	var answer client.Answer
	err := measure.Until(ctx, poll, func(ctx context.Context) (bool, error) {
		var failed error
		answer, failed = api.Call(ctx, client.Batch{Body: []byte(`{"logs":[]}`)}.Request(t.Key))
		return failed == nil && answer.Status == http.StatusBadRequest, nil
	})
	if err != nil {
		return fmt.Errorf("a new organization is not admitted: answered %d, %w", answer.Status, err)
	}
	return nil
}

// Where an accepted batch shows.
const (
	Balance = iota
	Group
	ReadBack
	Views // how many there are
)

// ViewNames are those of the views.
var ViewNames = [Views]string{"balance", "group", "read-back"}

// Shown returns what a view shows: all bytes, all errors, or the stamp of the
// newest entry in Unix milliseconds.
func (t Tenant) Shown(ctx context.Context, api *client.Client, view int) (shown int64, err error) {
	switch view {
	case Balance:
		balance, err := api.Balance(ctx, t.Billing, t.Organization)
		return balance.Accepted(), err
	case Group:
		groups, err := api.ErrorGroups(ctx, t.Key, t.Project)
		for _, group := range groups {
			shown += group.Count
		}
		return shown, err
	}
	page, err := api.Logs(ctx, t.Key, client.LogsQuery{Project: t.Project, Limit: 1})
	if err == nil && len(page.Items) > 0 {
		shown = StampOf(string(page.Items[0].Entry))
	}
	return shown, err
}

// viewTimeout limits the wait for a view.
const viewTimeout = 30 * time.Second

// A Watched tenant posts small batches, one with an error at a time, and
// looks at its views until they show each.
type Watched struct {
	Tenant
	api    *client.Client
	body   *Body
	posted [Views]int64 // what the views must show
}

// Watch returns a watched tenant.
func Watch(api *client.Client, t Tenant) *Watched {
	return &Watched{Tenant: t, api: api, body: NewBody(ErrorEvery)}
}

// Post posts a batch.
func (w *Watched) Post(ctx context.Context) error {
	at := time.Now()
	w.body.Stamp(at, w.posted[Group]*ErrorEvery+1)
	accepted, err := w.api.Post(ctx, w.Key, client.Batch{Body: w.body.Text})
	if err != nil {
		return err
	}
	w.posted = [Views]int64{w.posted[Balance] + accepted.BytesUsed, w.posted[Group] + 1, at.UnixMilli()}
	return nil
}

// Look polls the views, each by itself, until they show what is posted. No
// view shows a batch at once, so it waits before the first look.
func (w *Watched) Look(ctx context.Context, took []measure.Samples) error {
	var looking errgroup.Group
	begun := time.Now()
	for view := range Views {
		looking.Go(func() error {
			time.Sleep(poll)
			return measure.Until(ctx, poll, func(ctx context.Context) (bool, error) {
				shown, err := w.Shown(ctx, w.api, view)
				passed := time.Since(begun)
				done := shown >= w.posted[view]
				if err != nil {
					return false, fmt.Errorf("%s: %w", ViewNames[view], err)
				}
				if done || passed > viewTimeout {
					took[view].Add(passed)
				}
				if !done && passed > viewTimeout {
					return false, fmt.Errorf("%s: it does not show a batch %s after its answer", ViewNames[view], viewTimeout)
				}
				return done, nil
			})
		})
	}
	return looking.Wait()
}
