package notifications

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// A State is the state of a delivery.
type State string

// The states. They are part of responses and tables.
const (
	Pending State = "pending"
	Taken   State = "taken"
	Failed  State = "failed" // no longer tried
)

// States lists all of them.
func States() []State { return []State{Pending, Taken, Failed} }

// failureOff is why nothing was sent to a webhook that was off.
const failureOff = "The webhook was switched off."

// A Delivery is one message to one webhook, or by mail to one member.
type Delivery struct {
	Organization string
	ID           string
	Webhook      string // id; empty: mail
	Member       string // id; empty: to a webhook
	Type         string
	Body         string
	CreatedAt    time.Time
	State        State
	BegunAt      time.Time
	NextAt       time.Time
	Attempts     int
	AttemptedAt  time.Time // zero: never
	Status       int       // of the last attempt; 0: no answer
	Answer       string    // its beginning
	Failure      string    // why there was no answer
}

// A due delivery is to be sent now.
type due struct {
	Delivery
	to     tenants.Webhook
	reader addressee
}

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

// Facts makes deliveries of other modules' facts.
type Facts struct {
	Clock func() time.Time
	Mail  bool // whether mail is sent
}

// Deliver queues a fact for each subscribed webhook and mail, unless
// its project or organization is deleted. tx then acts as the system.
func (f Facts) Deliver(ctx context.Context, tx pgx.Tx, facts []tenants.Fact) error {
	if len(facts) == 0 {
		return nil
	}
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	gone, err := erasure.FindDeleted(ctx, tx, organizationsOf(facts))
	if err != nil {
		return err
	}
	var batch pgx.Batch
	for _, fact := range facts {
		if gone.Has(fact.Organization, fact.Project) {
			continue
		}
		if err := f.queue(&batch, fact); err != nil {
			return err
		}
	}
	return tx.SendBatch(ctx, &batch).Close()
}

func (f Facts) queue(batch *pgx.Batch, fact tenants.Fact) error {
	body, err := json.Marshal(webhook.Payload{Type: fact.Name, Timestamp: fact.Time, Data: fact.Data})
	if err != nil {
		return err
	}
	now := f.Clock().UTC()
	batch.Queue(addFact, fact.Organization, fact.ID, fact.Project, fact.Name, string(body), now, fact.Published, failureOff, append([]string{}, fact.Webhooks...),
		fact.OnlyWebhooks)
	if f.Mail && mailTextOf(fact.Name) != nil && now.Sub(fact.Published) < mailedWithin {
		batch.Queue(addMails, fact.Organization, fact.ID, fact.Project, fact.Name, string(body), now, mailKindOf(fact.Name),
			fact.MailTo.Roles, fact.MailTo.Members, mailsAnHour(fact.Name))
	}
	return nil
}

func organizationsOf(facts []tenants.Fact) (ids []string) {
	for _, fact := range facts {
		ids = append(ids, fact.Organization)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// An action is a request's change of a webhook.
type action struct {
	Verb  string
	Of    Ref
	Input any
}

// A once is an idempotent unit of work: a request
// with a known Idempotency-Key is answered as before.
type once struct {
	*unitofwork.Unit
	request idempotency.Request
}

// begin begins an action of a permitted caller, who defers Rollback.
func begin(ctx context.Context, work *unitofwork.Writer, request unitofwork.Request, wanted action) (*once, error) {
	if !request.Caller.CanAccess(wanted.Of.Organization) || !tenants.IsID(wanted.Of.ID) {
		return nil, tenants.ErrNotFound
	}
	u, err := work.Begin(ctx, wanted.Of.Organization, request)
	if err != nil {
		return nil, err
	}
	o := &once{Unit: u}
	if err := errors.Join(u.Require(ctx, tenants.WebhooksManage), o.name(request, wanted)); err != nil {
		u.Rollback(ctx)
		return nil, err
	}
	return o, nil
}

func (o *once) name(request unitofwork.Request, wanted action) error {
	text, err := json.Marshal(wanted)
	if key := request.IdempotencyKey; key != "" {
		o.request = idempotency.NewRequest("webhook_answers", wanted.Of.Organization, request.Caller.ID+"\n"+key, text)
	}
	return err
}

// answered reads the stored answer. ErrReused
// if the key came with another request.
func (o *once) answered(ctx context.Context, answer any) (again bool, err error) {
	again, err = o.request.Load(ctx, o.Tx(), answer)
	if errors.Is(err, idempotency.ErrReused) {
		err = tenants.ErrReused
	}
	return again, err
}

// keepAnswer commits the unit with its answer.
func (o *once) keepAnswer(ctx context.Context, answer any) error {
	if err := o.request.Save(ctx, o.Tx(), answer, o.Now()); err != nil {
		return err
	}
	return o.CommitNoWait(ctx)
}
