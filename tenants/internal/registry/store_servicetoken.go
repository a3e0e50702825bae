package registry

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func insertServiceToken(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.ServiceTokenIssued) error {
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO service_tokens (organization, id, name, scopes, configured, hash, first, last, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		e.Organization, e.ServiceToken, e.Name, e.Scopes, e.Configured, e.Digest.Hash, e.Digest.First, e.Digest.Last, e.At)
}

func revokeServiceToken(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.ServiceTokenRevoked) error {
	return query.ExactlyOne(ctx, tx, `UPDATE service_tokens SET revoked_at = $3, revoke_reason = $4 WHERE organization = $1 AND id = $2`,
		at.Organization, e.ServiceToken, e.At, e.Reason)
}

const selectServiceTokens = `
SELECT organization, id, name, scopes, configured, hash, first, last, created_at, revoked_at, revoke_reason
FROM service_tokens `

func scanServiceToken(row pgx.CollectableRow) (s tenants.ServiceToken, err error) {
	var revoked *time.Time
	err = row.Scan(&s.Organization, &s.ID, &s.Name, &s.Scopes, &s.Configured, &s.Digest.Hash, &s.Digest.First,
		&s.Digest.Last, &s.IssuedAt, &revoked, &s.Revocation.Reason)
	s.Revocation.At = query.OrZero(revoked)
	return s, err
}

// ServiceToken returns one service token, or ErrNotFound.
func (s Store) ServiceToken(ctx context.Context, as pg.Organization, id string) (tenants.ServiceToken, error) {
	return query.One(ctx, s.reader, as, scanServiceToken, selectServiceTokens+`WHERE `+query.Visible+` AND id = $2`, id)
}

// ServiceTokens lists at most limit service tokens of an organization, or
// of the installation, after a position.
func (s Store) ServiceTokens(ctx context.Context, as, organization pg.Organization, after query.Position, limit int) ([]tenants.ServiceToken, error) {
	return query.List(ctx, s.reader, as, scanServiceToken, selectServiceTokens+
		`WHERE `+query.Visible+` AND organization = $2 AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5`,
		organization, after.At, after.ID, limit)
}

// Configured returns configured tokens that were registered and not revoked.
func (s Store) Configured(ctx context.Context) ([]tenants.ServiceToken, error) {
	return query.List(ctx, s.reader, tenants.Installation, scanServiceToken, selectServiceTokens+
		`WHERE organization = $1 AND configured AND revoked_at IS NULL`)
}
