package signin

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A SeenSession is a session with its last recorded
// use: uses between two renewals are not recorded.
type SeenSession struct {
	tenants.Session
	Address string
	Client  string // its User-Agent
	SeenAt  time.Time
}

func insertSession(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.SessionStarted) error {
	_, err := tx.Exec(ctx, `DELETE FROM sessions WHERE organization = $1 AND member = $2 AND expires_at <= $3`, e.Organization, e.Member, e.At)
	if err != nil {
		return err
	}
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO sessions (organization, id, member, hash, started_at, expires_at, used_at, method, address, client)
		VALUES ($1, $2, $3, $4, $5, $6, $5, $7, $8, $9)`,
		e.Organization, e.Session, e.Member, e.Digest.Hash, e.At, e.ExpiresAt, e.Method, at.Origin.Address, at.Origin.Client)
}

func renewSession(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.SessionRenewed) error {
	return prolongSession(ctx, tx, at, e.Session, e.Digest.Hash, e.At, e.ExpiresAt)
}

func confirmSession(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.SessionConfirmed) error {
	return prolongSession(ctx, tx, at, e.Session, e.Digest.Hash, e.At, e.ExpiresAt)
}

func prolongSession(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, session, hash string, used, expires time.Time) error {
	return query.ExactlyOne(ctx, tx, `
		UPDATE sessions SET hash = $3, used_at = $4, expires_at = $5, address = $6, client = $7 WHERE organization = $1 AND id = $2`,
		at.Organization, session, hash, used, expires, at.Origin.Address, at.Origin.Client)
}

// endSession ends a session. An expired one may be deleted already.
func endSession(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.SessionEnded) error {
	_, err := tx.Exec(ctx, `UPDATE sessions SET ended_at = $3, end_reason = $4 WHERE organization = $1 AND id = $2`,
		at.Organization, e.Session, e.At, e.Reason)
	return err
}

const selectSessions = `
SELECT organization, id, member, hash, started_at, expires_at, coalesce(used_at, started_at), method, address, client, ended_at, end_reason
FROM sessions `

func scanSession(row pgx.CollectableRow) (s SeenSession, err error) {
	var ended *time.Time
	err = row.Scan(&s.Organization, &s.ID, &s.Member, &s.Digest.Hash, &s.StartedAt, &s.ExpiresAt, &s.SeenAt, &s.Method,
		&s.Address, &s.Client, &ended, &s.Revocation.Reason)
	s.Revocation.At = query.OrZero(ended)
	return s, err
}

// Session returns one session, or ErrNotFound. An ended
// one is kept at least until it would have expired.
func (s Store) Session(ctx context.Context, as pg.Organization, id string) (SeenSession, error) {
	return query.One(ctx, s.reader, as, scanSession, selectSessions+`WHERE `+query.Visible+` AND id = $2`, id)
}

// open is the condition of a member's sessions
// that have neither ended nor expired.
const open = `member = $2 AND expires_at > $3 AND ended_at IS NULL `

// Sessions lists a member's sessions that have
// neither ended nor expired at now, oldest first.
func (s Store) Sessions(ctx context.Context, as pg.Organization, member string, now time.Time) ([]SeenSession, error) {
	return query.List(ctx, s.reader, as, scanSession, selectSessions+`WHERE `+query.Visible+` AND `+open+`ORDER BY started_at, id`, member, now)
}

// SessionsAfter lists at most limit of those, after a position.
func (s Store) SessionsAfter(ctx context.Context, as pg.Organization, member string, now time.Time, after query.Position, limit int) ([]SeenSession, error) {
	return query.List(ctx, s.reader, as, scanSession, selectSessions+
		`WHERE `+query.Visible+` AND `+open+`AND (started_at, id) > ($4, $5) ORDER BY started_at, id LIMIT $6`,
		member, now, after.At, after.ID, limit)
}
