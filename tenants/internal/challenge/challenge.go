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

// Lifetime is how long a browser has to answer, by default.
const Lifetime = 5 * time.Minute

const ticketPrefix = "weirtkt_"

// ErrNone means that a browser has no challenge:
// it expired, was answered, or never existed.
var ErrNone = errors.New("there is no challenge to answer")

// Challenges stores challenges until they
// are answered. Safe for concurrent use.
type Challenges struct {
	store  store
	clock  func() time.Time
	random io.Reader
}

// New stores challenges in the schema of a pool.
func New(pool *pgxpool.Pool, clock func() time.Time, random io.Reader) *Challenges {
	return &Challenges{store{pool}, clock, random}
}

// A Challenge is what a browser has to answer.
type Challenge struct {
	Purpose string // an answer for another one is refused
	Subject string // who must answer; "": anybody
	Data    []byte // JSON, by which the answer is checked
	Lasts   time.Duration
}

// Issue stores a challenge, and returns the ticket for its answer.
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

// Take returns the data of a ticket's challenge and deletes it, whatever
// the answer. ErrNone if there is none of that purpose and subject.
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
