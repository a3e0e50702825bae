package soak

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weirlog/weir/deploy/client"
)

// A tenant is an organization with a project, and its behavior.
type tenant struct {
	number       int
	operator     string
	organization string
	project      string
	owner        string // e-mail address
	key          client.APIKey
	idleFrom     int // the day from which on it sends nothing any more; 0: it never stops
	deleteOn     int // the day on which it is deleted; 0: it never is
	deleted      bool
	tier         string // that it wants
	otherTier    string // that it sometimes changes to; empty: never
	billing      string // token that changes its tier
	webhook      string
	colleague    string // who is there for a month
}

// The days on which one tenant stops, and another is deleted.
const (
	idleAfter = 45
	deletedOn = 60
)

// newTenants makes two organizations of each tier. One sometimes goes up and
// down again, one down and up, one stops after a while, and one is deleted.
func newTenants(ctx context.Context, api *client.Client, operator, receiver string) (tenants []*tenant, err error) {
	for n, tier := range slices.Concat(tiers, tiers) {
		name := fmt.Sprintf("%s %d", tier, n)
		organization, err := api.CreateOrganization(ctx, operator, name, tier)
		if err != nil {
			return nil, err
		}
		project, err := api.CreateProject(ctx, operator, organization.ID, name)
		if err != nil {
			return nil, err
		}
		t := &tenant{number: n, operator: operator, organization: organization.ID, project: project.ID, owner: fmt.Sprintf("owner%d@example.com", n), tier: tier}
		err = api.CreateMember(ctx, operator, client.NewMember{
			Organization: organization.ID, Email: t.owner, Name: name, Role: "owner", Password: password,
		})
		if err != nil {
			return nil, err
		}
		if err := errors.Join(t.plan(ctx, api), t.subscribe(ctx, api, receiver)); err != nil {
			return nil, err
		}
		tenants = append(tenants, t)
	}
	return tenants, nil
}

// plan decides the tenant's behavior.
func (t *tenant) plan(ctx context.Context, api *client.Client) error {
	switch t.number {
	case 4:
		return t.changesTo(ctx, api, "bootstrapper")
	case 5:
		return t.changesTo(ctx, api, "indie")
	case 6:
		t.deleteOn = deletedOn
	case 7:
		t.idleFrom = idleAfter
	}
	return nil
}

// changesTo sets the tier to which the tenant changes.
func (t *tenant) changesTo(ctx context.Context, api *client.Client, tier string) error {
	token, err := api.CreateServiceToken(ctx, t.operator, t.organization, "billing", "billing:read", "billing:write")
	t.otherTier, t.billing = tier, token.Token
	return err
}

// end deletes the tenant on its day.
func (t *tenant) end(ctx context.Context, api *client.Client, day int) error {
	if t.deleted || t.deleteOn == 0 || day < t.deleteOn {
		return nil
	}
	t.deleted = true
	return api.DeleteOrganization(ctx, t.operator, t.organization)
}

// live sends a tenant's records of a day, and returns their number.
// Once a month it rotates its key and changes decisions.
func (t *tenant) live(ctx context.Context, api *client.Client, now time.Time, day, month int) (records int64, err error) {
	if t.idleFrom > 0 && day >= t.idleFrom {
		return 0, nil
	}
	if day%month == 0 {
		if err := errors.Join(t.changeKey(ctx, api), t.decideMonth(ctx, api, now, day/month)); err != nil {
			return 0, err
		}
	}
	for post := range 2 + t.number%3 {
		batch := client.Batch{Body: body(t.number, day, post, now), IdempotencyKey: fmt.Sprintf("%d-%d-%d", t.number, day, post)}
		accepted, err := api.Deliver(ctx, t.key.Key, batch)
		if err != nil {
			return records, err
		}
		if accepted.Rejected > 0 {
			return records, fmt.Errorf("%d entries were rejected: %v", accepted.Rejected, accepted.Errors)
		}
		records++
	}
	return records, nil
}

// changeKey makes a new key, and revokes the old one.
func (t *tenant) changeKey(ctx context.Context, api *client.Client) error {
	old := t.key
	var err error
	if t.key, err = api.CreateAPIKey(ctx, t.operator, t.project, "prod", "a month's key"); err != nil {
		return err
	}
	if err := awaitKey(ctx, api, t.key.Key); err != nil || old.ID == "" {
		return err
	}
	return api.RevokeAPIKey(ctx, t.operator, old.ID, "a new month")
}

// awaitKey returns once a new key is in force. On a busy machine that
// may take longer than its creation waits.
func awaitKey(ctx context.Context, api *client.Client, key string) error {
	return until(ctx, "a new key is in force", func(ctx context.Context) (bool, error) {
		_, err := api.Logs(ctx, key, client.LogsQuery{})
		if isProblem(err, http.StatusUnauthorized) {
			return false, nil
		}
		return true, err
	})
}

func isProblem(err error, status int) bool {
	var problem *client.Problem
	return errors.As(err, &problem) && problem.Status == status
}
