package challenge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/tenants"
)

// Lasts is how long a browser has to answer, by default.
const Lifetime = 5 * time.Minute

const ticketPrefix = "weirtkt_"

// ErrNone means that there is no challenge for a browser: it
// expired, was answered, or never existed.
var ErrNone = errors.New("there is no challenge to answer")

// Challenges are kept until they are answered. They are safe for concurrent use.
type Challenges struct {
	store  store
	clock  func() time.Time
	random io.Reader
}

// New keeps challenges in the schema of a pool.
func New(pool *pgxpool.Pool, clock func() time.Time, random io.Reader) *Challenges {
	return &Challenges{store{pool}, clock, random}
}

// A Challenge is what a browser has to answer.
type Challenge struct {
	Purpose string // an answer for another one is none
	Subject string // whose answer it has to be; "": anybody's
	Data    []byte // JSON, by which the answer is judged
	Lasts   time.Duration
}

// Issue keeps a challenge until its answer, and returns the ticket for that.
func (c *Challenges) Issue(ctx context.Context, challenge Challenge) (tenants.Secret, error) {
	ticket, err := tenants.NewSecret(ticketPrefix, c.random)
	if err != nil {
		return tenants.Secret{}, err
	}
	return ticket, c.store.keep(ctx, ticket.Digest().Hash, challenge, c.clock())
}

// ParseTicket reads a ticket, or fails with ErrNone.
func ParseTicket(ticket string) (tenants.Secret, error) {
	known, err := tenants.ParseSecret(ticketPrefix, ticket)
	if err != nil {
		return known, ErrNone
	}
	return known, nil
}

// Take returns the data of a ticket's challenge and deletes it, however it is
// answered. ErrNone where there is none of that purpose for that subject.
func (c *Challenges) Take(ctx context.Context, ticket, purpose, subject string) ([]byte, error) {
	known, err := ParseTicket(ticket)
	if err != nil {
		return nil, err
	}
	taken, expiresAt, err := c.store.take(ctx, known.Digest().Hash)
	if err != nil {
		return nil, err
	}
	if taken.Purpose != purpose || taken.Subject != subject || !c.clock().Before(expiresAt) {
		return nil, fmt.Errorf("to %s: %w", purpose, ErrNone)
	}
	return taken.Data, nil
}
