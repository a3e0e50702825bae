package soak

import (
	"context"
	"fmt"
	"net/http"

	"github.com/weirlog/weir/deploy/client"
)

// visitors come for a month, and are deleted: an organization that
// tries Weir, one with a test clock, and a project.
type visitors struct {
	trial, rehearsal, project string
	key                       string // of the project
}

// changeVisitors deletes last month's visitors and adds new ones.
func (r *run) changeVisitors(ctx context.Context, month int) error {
	before := r.visitors
	if err := r.receiveVisitors(ctx, month); err != nil || before == (visitors{}) {
		return err
	}
	for _, gone := range []string{"/organizations/" + before.trial, "/organizations/" + before.rehearsal, "/projects/" + before.project} {
		if _, err := decide(ctx, r.api, r.operator(), decision{http.MethodDelete, gone, ""}); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) receiveVisitors(ctx context.Context, month int) error {
	trial, err := r.api.CreateOrganization(ctx, r.operator(), fmt.Sprintf("Trial %d", month), "indie")
	if err != nil {
		return err
	}
	if _, err := r.use(ctx, trial.ID); err != nil {
		return err
	}
	rehearsal, err := r.api.CreateOrganization(ctx, r.operator(), fmt.Sprintf("Rehearsal %d", month), "indie")
	if err != nil {
		return err
	}
	if err := r.rehearse(ctx, rehearsal.ID); err != nil {
		return err
	}
	key, err := r.use(ctx, r.tenants[0].organization)
	r.visitors = visitors{trial.ID, rehearsal.ID, key.Project, key.Key}
	return err
}

// use makes a project of an organization with a key, and sends entries.
func (r *run) use(ctx context.Context, organization string) (key client.APIKey, err error) {
	made, err := r.api.CreateProject(ctx, r.operator(), organization, "Prototype")
	if err != nil {
		return key, err
	}
	key, err = r.api.CreateAPIKey(ctx, r.operator(), made.ID, "dev", "a trial's key")
	if err != nil {
		return key, err
	}
	if err := awaitKey(ctx, r.api, key.Key); err != nil {
		return key, err
	}
	r.accepted++
	_, err = r.api.Deliver(ctx, key.Key, client.Batch{Body: body(len(r.tenants), r.day, 0, r.clock.Now()), IdempotencyKey: made.ID})
	return key, err
}

// rehearse gives an organization a test clock, and uses it.
func (r *run) rehearse(ctx context.Context, organization string) error {
	clock := "/organizations/" + organization + "/test-clock"
	for _, d := range []decision{{http.MethodPut, clock, `{}`}, {http.MethodPost, clock + "/use", `{"bytes":1000}`}} {
		if _, err := decide(ctx, r.api, r.operator(), d); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) operator() string { return r.app.Env().OperatorToken }
