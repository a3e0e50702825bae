package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// A Challenge is what a browser was asked to prove.
type Challenge struct {
	ID        string // SHA-256 of its ticket, hexadecimal
	Purpose   string // an answer for another one is none
	Subject   string // whose answer it has to be; "": anybody's
	Data      []byte // JSON
	ExpiresAt time.Time
}

// Challenges are those that were not answered yet.
type Challenges struct {
	pool *pgxpool.Pool
}

// NewChallenges returns the challenges of a pool's schema.
func NewChallenges(pool *pgxpool.Pool) *Challenges {
	return &Challenges{pool: pool}
}

// Keep keeps a challenge until it is answered or over, and forgets those that are over.
func (c *Challenges) Keep(ctx context.Context, challenge Challenge, now time.Time) error {
	return c.write(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM challenges WHERE organization = '*' AND expires_at <= $1`, now); err != nil {
			return err
		}
		return query.ExactlyOne(ctx, tx, `
			INSERT INTO challenges (organization, id, purpose, subject, data, expires_at) VALUES ('*', $1, $2, $3, $4, $5)`,
			challenge.ID, challenge.Purpose, challenge.Subject, challenge.Data, challenge.ExpiresAt)
	})
}

// Take returns a challenge and forgets it, whether it is answered well or not: there is no second answer. It is
// ErrNotFound where there is none of that purpose for that subject, or not any more.
func (c *Challenges) Take(ctx context.Context, id, purpose, subject string, now time.Time) (data []byte, err error) {
	var taken Challenge
	err = c.write(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `DELETE FROM challenges WHERE organization = '*' AND id = $1 RETURNING purpose, subject, data, expires_at`, id).
			Scan(&taken.Purpose, &taken.Subject, &taken.Data, &taken.ExpiresAt)
	})
	none := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !none {
		return nil, err
	}
	if none || taken.Purpose != purpose || taken.Subject != subject || !now.Before(taken.ExpiresAt) {
		return nil, fmt.Errorf("a challenge for %s: %w", purpose, tenants.ErrNotFound)
	}
	return taken.Data, nil
}

func (c *Challenges) write(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pg.InTx(ctx, c.pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}
