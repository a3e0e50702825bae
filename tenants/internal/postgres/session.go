package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/tenants"
)

func insertSession(ctx context.Context, tx pgx.Tx, e tenants.SessionStarted) error {
	_, err := tx.Exec(ctx, `DELETE FROM sessions WHERE organization = $1 AND member = $2 AND expires_at <= $3`, e.Organization, e.Member, e.At)
	if err != nil {
		return err
	}
	return exactlyOne(ctx, tx, `
		INSERT INTO sessions (organization, id, member, hash, started_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		e.Organization, e.Session, e.Member, e.Imprint.Hash, e.At, e.ExpiresAt)
}

// prolongSession gives a session another secret and another end.
func prolongSession(ctx context.Context, tx pgx.Tx, organization, id string, imprint tenants.Imprint, expiresAt time.Time) error {
	return exactlyOne(ctx, tx, `UPDATE sessions SET hash = $3, expires_at = $4 WHERE organization = $1 AND id = $2`,
		organization, id, imprint.Hash, expiresAt)
}

// endSession forgets a session. One that has expired may be forgotten already.
func endSession(ctx context.Context, tx pgx.Tx, organization string, e tenants.SessionEnded) error {
	_, err := tx.Exec(ctx, `DELETE FROM sessions WHERE organization = $1 AND id = $2`, organization, e.Session)
	return err
}

// Sessions lists the sessions of a member that have neither ended nor expired at now, oldest first: their ids, hashes
// and times.
func (v *Views) Sessions(ctx context.Context, organization, member string, now time.Time) ([]tenants.Session, error) {
	return list(ctx, v, organization, scanSession, `
		SELECT organization, id, member, hash, started_at, expires_at FROM sessions
		WHERE organization = $1 AND member = $2 AND expires_at > $3 ORDER BY started_at, id`, member, now)
}

func scanSession(row pgx.CollectableRow) (s tenants.Session, err error) {
	err = row.Scan(&s.Organization, &s.ID, &s.Member, &s.Imprint.Hash, &s.StartedAt, &s.ExpiresAt)
	return s, err
}
