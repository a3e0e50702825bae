package challenge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
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

// A store holds unanswered challenges by the SHA-256 of their tickets.
type store struct{ pool *pgxpool.Pool }

// keep stores a challenge until it is answered
// or expired, and deletes expired ones.
func (s store) keep(ctx context.Context, id string, asked Challenge, now time.Time) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM challenges WHERE organization = '*' AND expires_at <= $1`, now); err != nil {
			return err
		}
		return query.ExactlyOne(ctx, tx, `
			INSERT INTO challenges (organization, id, purpose, subject, data, expires_at) VALUES ('*', $1, $2, $3, $4, $5)`,
			id, asked.Purpose, asked.Subject, asked.Data, now.Add(asked.Lasts))
	})
}

// take returns a challenge and deletes it; ErrNone where there is none.
func (s store) take(ctx context.Context, id string) (taken Challenge, expiresAt time.Time, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `DELETE FROM challenges WHERE organization = '*' AND id = $1 RETURNING purpose, subject, data, expires_at`, id).
			Scan(&taken.Purpose, &taken.Subject, &taken.Data, &expiresAt)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNone
	}
	return taken, expiresAt, err
}

func (s store) write(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pg.InTxAsSystem(ctx, s.pool, fn)
}

// Table is that of challenges, for a prune.Pruner.
func Table(clock func() time.Time) prune.Table {
	return prune.Rows{
		Table: "challenges", Bound: "until they are answered or over, which is minutes", Age: "expires_at", Before: prune.Ago(0, clock), AppendOnly: true,
	}
}
