package notifications

import (
	"context"
	"encoding/json"
	"time"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// testType is the type of a test message.
const testType = "webhook.test"

// Deliveries lists deliveries to webhooks, and replays them. Its
// errors are those of unitofwork.Writer, and tenants.ErrWebhookOff.
type Deliveries struct {
	work  *unitofwork.Writer
	store Store
	wake  func() // of the Sender
	mail  bool   // whether mail is sent
}

// NewDeliveries returns the deliveries of
// a service's webhooks, made by sender.
func NewDeliveries(service *Service, sender *Sender) *Deliveries {
	return &Deliveries{service.work, service.store, sender.Wake, sender.Mailer != nil}
}

// List lists the deliveries to a webhook that the caller
// may access, newest first; in any state if none is given.
func (d *Deliveries) List(ctx context.Context, caller tenants.Caller, of Ref, state State, before query.Position, limit int) ([]Delivery, error) {
	return d.store.Deliveries(ctx, pg.Organization(caller.Organization), of, state, before, limit)
}

// Delivery returns one delivery to a webhook that the caller may access.
func (d *Deliveries) Delivery(ctx context.Context, caller tenants.Caller, of Ref, id string) (Delivery, error) {
	if !tenants.IsID(of.ID) || !tenants.IsID(id) {
		return Delivery{}, tenants.ErrNotFound
	}
	return d.store.Delivery(ctx, pg.Organization(caller.Organization), of, id)
}

// Test queues a test message to a webhook that the caller may access.
func (d *Deliveries) Test(ctx context.Context, request unitofwork.Request, of Ref) (Delivery, error) {
	now := d.work.Now()
	data, err := json.Marshal(map[string]string{"organization": of.Organization, "webhook": of.ID})
	if err != nil {
		return Delivery{}, err
	}
	body, err := json.Marshal(webhook.Payload{Type: testType, Timestamp: now, Data: data})
	if err != nil {
		return Delivery{}, err
	}
	id := "msg_" + d.work.IDs()
	sent, err := d.change(ctx, request, action{Verb: "test", Of: of}, id, addTest, of.Organization, of.ID, id, testType, string(body), now)
	if err != nil {
		return Delivery{}, err
	}
	return d.Delivery(ctx, request.Caller, of, sent.Delivery)
}

// Replay queues one delivery again, with its id.
func (d *Deliveries) Replay(ctx context.Context, request unitofwork.Request, of Ref, id string) (Delivery, error) {
	if _, err := d.Delivery(ctx, request.Caller, of, id); err != nil {
		return Delivery{}, err
	}
	if _, err := d.change(ctx, request, action{"replay", of, id}, id, replayStatement+`id = $4`, of.Organization, of.ID, d.work.Now(), id); err != nil {
		return Delivery{}, err
	}
	return d.Delivery(ctx, request.Caller, of, id)
}

// ReplayFailed queues all failed deliveries created
// since a time again, and returns their number.
func (d *Deliveries) ReplayFailed(ctx context.Context, request unitofwork.Request, of Ref, since time.Time) (int64, error) {
	sent, err := d.change(ctx, request, action{"replay failed", of, since}, "", replayStatement+`state = 'failed' AND created_at >= $4`,
		of.Organization, of.ID, d.work.Now(), since)
	return sent.Count, err
}

// sending is what a request queued.
type sending struct {
	Delivery string `json:"delivery,omitempty"` // id; empty: several
	Count    int64  `json:"count"`
}

// change changes deliveries to a webhook
// that is on, once, for a permitted caller.
func (d *Deliveries) change(ctx context.Context, request unitofwork.Request, asked action, delivery, statement string, args ...any) (sent sending, err error) {
	o, err := begin(ctx, d.work, request, asked)
	if err != nil {
		return sent, err
	}
	defer o.Rollback(ctx)
	if again, err := o.answered(ctx, &sent); err != nil || again {
		return sent, err
	}
	now, err := NewStore(o.Reader()).Webhook(ctx, pg.Organization(asked.Of.Organization), asked.Of)
	if err != nil {
		return sent, err
	}
	if !now.On() {
		return sent, tenants.ErrWebhookOff
	}
	tag, err := o.Tx().Exec(ctx, statement, args...)
	if err != nil {
		return sent, err
	}
	defer d.wake()
	sent = sending{delivery, tag.RowsAffected()}
	return sent, o.keepAnswer(ctx, sent)
}
