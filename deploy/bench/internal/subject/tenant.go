package subject

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/measure"
)

// A Tenant is an organization with one project, its key and its billing
// token.
type Tenant struct{ Organization, Project, Key, Billing string }

// NewTenants creates tenants of tier Scale through the API and waits until
// their posts are admitted: an empty batch, which costs nothing, is refused as
// empty.
func (w *Weir) NewTenants(ctx context.Context, name string, n int) ([]Tenant, error) {
	made := make([]Tenant, n)
	for i := range made {
		own := fmt.Sprintf("%s %d", name, i)
		t, err := w.NewTenant(ctx, own, "scale")
		if err != nil {
			return nil, err
		}
		token, err := w.CreateServiceToken(ctx, w.Env.OperatorToken, t.Organization, own, "billing:read")
		if err != nil {
			return nil, err
		}
		t.Billing = token.Token
		made[i] = t
	}
	for _, t := range made {
		err := measure.Await(ctx, "a new organization is admitted", func(ctx context.Context) (bool, error) {
			answer, err := w.Call(ctx, client.Batch{Body: []byte(`{"logs":[]}`)}.Request(t.Key))
			return err == nil && answer.Status == http.StatusBadRequest, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return made, nil
}

// NewTenant creates a tenant without a billing token.
func (w *Weir) NewTenant(ctx context.Context, name, tier string) (Tenant, error) {
	organization, err := w.CreateOrganization(ctx, w.Env.OperatorToken, name, tier)
	if err != nil {
		return Tenant{}, err
	}
	key, err := NewKey(ctx, w.Client, w.Env.OperatorToken, organization.ID, name)
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

// WatchedBatch is how many entries of a batch a watched tenant posts.
const WatchedBatch = 10

// A Watched tenant posts small batches, each with an error, and looks at its views until they show each.
type Watched struct {
	Tenant
	api    *client.Client
	body   *Body
	posted [Views]int64 // what the views must show
}

// Watch creates tenants that are watched.
func (w *Weir) Watch(ctx context.Context, name string, n int) ([]*Watched, error) {
	tenants, err := w.NewTenants(ctx, name, n)
	all := make([]*Watched, len(tenants))
	for i, t := range tenants {
		all[i] = &Watched{Tenant: t, api: w.Client, body: NewBody(WatchedBatch, uint64(i))}
	}
	return all, err
}

// Post posts a batch.
func (w *Watched) Post(ctx context.Context) error {
	at := time.Now()
	w.body.Fill(at)
	accepted, err := w.api.Post(ctx, w.Key, client.Batch{Body: w.body.Text})
	if err != nil {
		return err
	}
	w.posted = [Views]int64{w.posted[Balance] + accepted.BytesUsed, w.posted[Group] + w.body.Errors, at.UnixMilli()}
	return nil
}

// Stamp is that of the newest batch posted.
func (w *Watched) Stamp() int64 { return w.posted[ReadBack] }

// viewTimeout is how long a view may lack a batch.
const viewTimeout = 30 * time.Second

// Look polls the views, each by itself, until they show what is posted. No
// view shows a batch at once, so it waits before the first look.
func (w *Watched) Look(ctx context.Context, took []measure.Samples) error {
	const pause = 20 * time.Millisecond
	var looking errgroup.Group
	begun := time.Now()
	for view := range Views {
		looking.Go(func() error {
			time.Sleep(pause)
			err := measure.Until(ctx, pause, func(ctx context.Context) (bool, error) {
				shown, err := w.Shown(ctx, w.api, view)
				passed := time.Since(begun)
				done := shown >= w.posted[view]
				if err == nil && (done || passed > viewTimeout) {
					took[view].Add(passed)
				}
				if err == nil && !done && passed > viewTimeout {
					err = errors.New("it does not show a batch " + viewTimeout.String() + " after its answer")
				}
				return done, err
			})
			if err != nil {
				err = fmt.Errorf("%s: %w", ViewNames[view], err)
			}
			return err
		})
	}
	return looking.Wait()
}

// Record is a record of a bus, by its key.
func Record(key string, headers map[string]string, value []byte) *message.Message {
	m := message.NewMessage("", value)
	maps.Copy(m.Metadata, headers)
	m.Metadata[bus.KeyMetadata] = key
	return m
}
