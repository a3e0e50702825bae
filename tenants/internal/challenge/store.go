package challenge

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants/internal/query"
)

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
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}
