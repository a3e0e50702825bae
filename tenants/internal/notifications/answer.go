package notifications

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

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
