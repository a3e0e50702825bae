package registrar

import (
	"context"
	"errors"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// What challenges are for. An answer for another purpose is none.
const (
	forPasskey = "register a passkey"
	forSignIn  = "sign in by passkey"
	forConfirm = "confirm by passkey"
)

// ChallengeLasts is how long a browser has to answer.
const ChallengeLasts = 5 * time.Minute

const ticketPrefix = "weirtkt_"

// ErrChallenge says that a browser has nothing to answer: it took too long, has answered before, or never was asked.
var ErrChallenge = errors.New("there is no challenge to answer")

// Asked is what a browser was asked, and its ticket for the answer.
type Asked struct {
	Options any // for the browser, as JSON
	Ticket  tenants.Secret
}

// ask keeps a question until its answer.
func (r *Registrar) ask(ctx context.Context, purpose, subject string, data []byte, lasts time.Duration) (tenants.Secret, error) {
	ticket, err := tenants.NewSecret(ticketPrefix, r.Random)
	if err != nil {
		return tenants.Secret{}, err
	}
	return ticket, r.Challenges.Keep(ctx, postgres.Challenge{
		ID: ticket.Digest().Hash, Purpose: purpose, Subject: subject, Data: data, ExpiresAt: r.now().Add(lasts),
	}, r.now())
}

// asked returns the question that a ticket is for, once, or ErrChallenge.
func (r *Registrar) asked(ctx context.Context, ticket, purpose, subject string) ([]byte, error) {
	known, err := tenants.ParseSecret(ticketPrefix, ticket)
	if err != nil {
		return nil, ErrChallenge
	}
	data, err := r.Challenges.Take(ctx, known.Digest().Hash, purpose, subject, r.now())
	if errors.Is(err, tenants.ErrNotFound) {
		err = ErrChallenge
	}
	return data, err
}
