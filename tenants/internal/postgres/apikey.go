package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/tenants"
)

func insertAPIKey(ctx context.Context, tx pgx.Tx, e tenants.APIKeyIssued) error {
	return exactlyOne(ctx, tx, `
		INSERT INTO api_keys (organization, id, project, environment, name, hash, first, last, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		e.Organization, e.APIKey, e.Project, e.Environment, e.Name, e.Imprint.Hash, e.Imprint.First, e.Imprint.Last,
		e.At, e.ExpiresAt)
}

func revokeAPIKey(ctx context.Context, tx pgx.Tx, organization string, e tenants.APIKeyRevoked) error {
	return exactlyOne(ctx, tx, `UPDATE api_keys SET revoked_at = $3, revoke_reason = $4 WHERE organization = $1 AND id = $2`,
		organization, e.APIKey, e.At, e.Reason)
}

const selectAPIKeys = `
SELECT organization, id, project, environment, name, hash, first, last, created_at, expires_at, revoked_at, revoke_reason
FROM api_keys `

func scanAPIKey(row pgx.CollectableRow) (k tenants.APIKey, err error) {
	var expires, revoked *time.Time
	err = row.Scan(&k.Organization, &k.ID, &k.Project, &k.Environment, &k.Name, &k.Imprint.Hash, &k.Imprint.First,
		&k.Imprint.Last, &k.IssuedAt, &expires, &revoked, &k.Revocation.Reason)
	k.ExpiresAt, k.Revocation.At = orZero(expires), orZero(revoked)
	return k, err
}

// orZero is the zero time for null.
func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// APIKey returns one API key, or ErrNotFound.
func (v *Views) APIKey(ctx context.Context, as, id string) (tenants.APIKey, error) {
	return one(ctx, v, as, scanAPIKey, selectAPIKeys+`WHERE `+visible+` AND id = $2`, id)
}

// APIKeys lists at most limit API keys of a project after a position, the revoked ones among them.
func (v *Views) APIKeys(ctx context.Context, as string, of tenants.Project, after Position, limit int) ([]tenants.APIKey, error) {
	return list(ctx, v, as, scanAPIKey, selectAPIKeys+
		`WHERE `+visible+` AND organization = $2 AND project = $3 AND (created_at, id) > ($4, $5) ORDER BY created_at, id LIMIT $6`,
		of.Organization, of.ID, after.At, after.ID, limit)
}

// A NamedAPIKey is an API key with the name of its project.
type NamedAPIKey struct {
	tenants.APIKey
	ProjectName string
}

// NewestAPIKeys lists at most limit API keys of all projects of an organization before a position, newest first, the
// revoked ones among them. The zero position is before none.
func (v *Views) NewestAPIKeys(ctx context.Context, organization string, before Position, limit int) ([]NamedAPIKey, error) {
	return list(ctx, v, organization, scanNamedAPIKey, `
		SELECT k.organization, k.id, k.project, k.environment, k.name, k.hash, k.first, k.last, k.created_at, k.expires_at,
		       k.revoked_at, k.revoke_reason, p.name
		FROM api_keys k JOIN projects p ON p.organization = k.organization AND p.id = k.project
		WHERE k.organization = $1 AND ($3 = '' OR (k.created_at, k.id) < ($2, $3))
		ORDER BY k.created_at DESC, k.id DESC LIMIT $4`, before.At, before.ID, limit)
}

func scanNamedAPIKey(row pgx.CollectableRow) (k NamedAPIKey, err error) {
	var expires, revoked *time.Time
	err = row.Scan(&k.Organization, &k.ID, &k.Project, &k.Environment, &k.Name, &k.Imprint.Hash, &k.Imprint.First,
		&k.Imprint.Last, &k.IssuedAt, &expires, &revoked, &k.Revocation.Reason, &k.ProjectName)
	k.ExpiresAt, k.Revocation.At = orZero(expires), orZero(revoked)
	return k, err
}
