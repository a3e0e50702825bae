package notifications

import (
	"context"
	"encoding/json"
	"time"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/webhook"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// testType is that of the message that tries a webhook.
const testType = "webhook.test"

// Deliveries shows what was sent to webhooks, and has it sent again. Its errors are those of unitofwork.Writer, and tenants.ErrWebhookOff.
type Deliveries struct {
	work  *unitofwork.Writer
	store Store
	wake  func() // of the Sender
	mail  bool   // is sent from here
}

// NewDeliveries returns the deliveries of a service's webhooks, which sender sends.
func NewDeliveries(service *Service, sender *Sender) *Deliveries {
	return &Deliveries{service.work, service.store, sender.Wake, sender.Mailer != nil}
}

// List lists the deliveries to a webhook that the caller reaches, the newest first; in any state where none is named.
func (d *Deliveries) List(ctx context.Context, caller tenants.Caller, of Listed, state State, before query.Position, limit int) ([]Delivery, error) {
	return d.store.Deliveries(ctx, pg.Organization(caller.Organization), of, state, before, limit)
}

// Delivery returns one delivery to a webhook that the caller reaches.
func (d *Deliveries) Delivery(ctx context.Context, caller tenants.Caller, of Listed, id string) (Delivery, error) {
	return d.store.Delivery(ctx, pg.Organization(caller.Organization), of, id)
}

// Test has a message sent that tries a webhook that the caller reaches.
func (d *Deliveries) Test(ctx context.Context, request unitofwork.Request, of Listed) (Delivery, error) {
	now := d.work.Now()
	data, err := json.Marshal(map[string]string{"organization": of.Organization, "webhook": of.ID})
	if err != nil {
		return Delivery{}, err
	}
	body, err := json.Marshal(webhook.Payload{Type: testType, Timestamp: now, Data: data})
	if err != nil {
		return Delivery{}, err
	}
	id := d.work.NewID(request, "msg_", of.Organization)
	if _, err := d.change(ctx, request, of, addTest, of.Organization, of.ID, id, testType, string(body), now); err != nil {
		return Delivery{}, err
	}
	return d.Delivery(ctx, request.Caller, of, id)
}

// Replay has one delivery sent again, with its id.
func (d *Deliveries) Replay(ctx context.Context, request unitofwork.Request, of Listed, id string) (Delivery, error) {
	if _, err := d.change(ctx, request, of, again+`id = $4`, of.Organization, of.ID, d.work.Now(), id); err != nil {
		return Delivery{}, err
	}
	return d.Delivery(ctx, request.Caller, of, id)
}

// ReplayFailed has all deliveries sent again that were created since and have failed, and returns how many these are.
func (d *Deliveries) ReplayFailed(ctx context.Context, request unitofwork.Request, of Listed, since time.Time) (int64, error) {
	return d.change(ctx, request, of, again+`state = 'failed' AND created_at >= $4`, of.Organization, of.ID, d.work.Now(), since)
}

// change changes deliveries to a webhook that is on, for whoever may.
func (d *Deliveries) change(ctx context.Context, request unitofwork.Request, of Listed, statement string, args ...any) (changed int64, err error) {
	u, err := d.work.Begin(ctx, of.Organization, request)
	if err != nil {
		return 0, err
	}
	defer u.Rollback(ctx)
	if err := u.Require(ctx, tenants.WebhooksManage); err != nil {
		return 0, err
	}
	now, err := unitofwork.Load[tenants.Webhook](ctx, u, stream(of.Organization, of.ID))
	if err != nil {
		return 0, err
	}
	if !now.State.On() {
		return 0, tenants.ErrWebhookOff
	}
	tag, err := u.Tx().Exec(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	defer d.wake()
	return tag.RowsAffected(), u.Keep(ctx)
}
