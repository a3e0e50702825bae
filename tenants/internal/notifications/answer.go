package notifications

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// An errand is what a request wants done with a webhook.
type errand struct {
	Verb  string
	Of    Ref
	Input any
}

// A once is a unit of work that has its effect once: a request whose Idempotency-Key came before is answered as it was then.
type once struct {
	*unitofwork.Unit
	organization string
	key, input   []byte // hashes; nil: every request is a new one
}

// begin begins an errand, for whoever may have it done. The caller defers Rollback.
func begin(ctx context.Context, work *unitofwork.Writer, request unitofwork.Request, wanted errand) (*once, error) {
	if !request.Caller.Reaches(wanted.Of.Organization) || !tenants.IsID(wanted.Of.ID) {
		return nil, tenants.ErrNotFound
	}
	u, err := work.Begin(ctx, wanted.Of.Organization, request)
	if err != nil {
		return nil, err
	}
	o := &once{Unit: u, organization: wanted.Of.Organization}
	if err := errors.Join(u.Require(ctx, tenants.WebhooksManage), o.name(request, wanted)); err != nil {
		u.Rollback(ctx)
		return nil, err
	}
	return o, nil
}

func (o *once) name(request unitofwork.Request, wanted errand) error {
	if request.IdempotencyKey == "" {
		return nil
	}
	text, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	key, input := sha256.Sum256([]byte(request.Caller.ID+"\n"+request.IdempotencyKey)), sha256.Sum256(text)
	o.key, o.input = key[:], input[:]
	return nil
}

// answered reads what was answered before. ErrReused where the key came with another request.
func (o *once) answered(ctx context.Context, answer any) (again bool, err error) {
	if o.key == nil {
		return false, nil
	}
	var input, text []byte
	err = o.Tx().QueryRow(ctx, `SELECT input, answer FROM webhook_answers WHERE organization = $1 AND key = $2`, o.organization, o.key).Scan(&input, &text)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot read what was answered before: %w", err)
	case !bytes.Equal(input, o.input):
		return false, tenants.ErrReused
	}
	return true, json.Unmarshal(text, answer)
}

// keepAnswer keeps the unit, and what is answered.
func (o *once) keepAnswer(ctx context.Context, answer any) error {
	if o.key == nil {
		return o.Keep(ctx)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = o.Tx().Exec(ctx, `INSERT INTO webhook_answers (organization, key, input, answer, answered_at) VALUES ($1, $2, $3, $4, $5)`,
		o.organization, o.key, o.input, text, o.Now())
	if err != nil {
		return fmt.Errorf("cannot keep an answer: %w", err)
	}
	return o.Keep(ctx)
}
