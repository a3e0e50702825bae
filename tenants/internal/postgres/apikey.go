package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

func insertAPIKey(ctx context.Context, tx pgx.Tx, e tenants.APIKeyIssued, by tenants.Origin) error {
	return exactlyOne(ctx, tx, `
		INSERT INTO api_keys (organization, id, project, environment, name, hash, first, last, created_at, expires_at,
		                      rate_per_minute, replaces, created_by, access)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		e.Organization, e.APIKey, e.Project, e.Environment, e.Name, e.Digest.Hash, e.Digest.First, e.Digest.Last,
		e.At, e.ExpiresAt, e.RatePerMinute, e.Replaces, by.Actor, e.Access.OrFull())
}

func revokeAPIKey(ctx context.Context, tx pgx.Tx, organization string, e tenants.APIKeyRevoked) error {
	return exactlyOne(ctx, tx, `UPDATE api_keys SET revoked_at = $3, revoke_reason = $4 WHERE organization = $1 AND id = $2`,
		organization, e.APIKey, e.At, e.Reason)
}

func rotateAPIKey(ctx context.Context, tx pgx.Tx, organization string, e tenants.APIKeyRotated) error {
	return exactlyOne(ctx, tx, `UPDATE api_keys SET rotated_to = $3, rotated_at = $4, expires_at = $5 WHERE organization = $1 AND id = $2`,
		organization, e.APIKey, e.To, e.At, e.ExpiresAt)
}

func renameAPIKey(ctx context.Context, tx pgx.Tx, organization string, e tenants.APIKeyRenamed) error {
	return exactlyOne(ctx, tx, `UPDATE api_keys SET name = $3 WHERE organization = $1 AND id = $2`, organization, e.APIKey, e.Name)
}

func limitAPIKey(ctx context.Context, tx pgx.Tx, organization string, e tenants.APIKeyLimited) error {
	return exactlyOne(ctx, tx, `UPDATE api_keys SET rate_per_minute = $3 WHERE organization = $1 AND id = $2`,
		organization, e.APIKey, e.RatePerMinute)
}

func changeAPIKeyAccess(ctx context.Context, tx pgx.Tx, organization string, e tenants.APIKeyAccessChanged) error {
	return exactlyOne(ctx, tx, `UPDATE api_keys SET access = $3 WHERE organization = $1 AND id = $2`, organization, e.APIKey, e.Access)
}

func curtailAPIKey(ctx context.Context, tx pgx.Tx, organization string, e tenants.APIKeyCurtailed) error {
	return exactlyOne(ctx, tx, `UPDATE api_keys SET expires_at = $3 WHERE organization = $1 AND id = $2`,
		organization, e.APIKey, e.ExpiresAt)
}

func exposeAPIKey(ctx context.Context, tx pgx.Tx, organization string, e tenants.APIKeyExposed) error {
	exposure, err := json.Marshal(tenants.Exposure{Kind: e.Kind, Where: e.Where, Source: e.Source, Address: e.Address, At: e.At})
	if err != nil {
		return err
	}
	return exactlyOne(ctx, tx, `UPDATE api_keys SET exposures = exposures || $3::jsonb WHERE organization = $1 AND id = $2`,
		organization, e.APIKey, string(exposure))
}

// A ListedAPIKey is an API key with what is told of it beside its own state.
type ListedAPIKey struct {
	tenants.APIKey
	tenants.KeyUsage
	ProjectName string
	CreatedBy   string // name of the member who asked for it; the id of who else did
}

const selectAPIKeys = `
SELECT k.organization, k.id, k.project, k.environment, k.name, k.hash, k.first, k.last, k.created_at, k.expires_at, k.revoked_at,
       k.revoke_reason, k.rate_per_minute, k.replaces, k.rotated_to, k.rotated_at, k.exposures, k.access, p.name, coalesce(m.name, k.created_by),
       coalesce(u.accepted, 0), coalesce(u.rejected, 0), coalesce(u.refused, 0), coalesce(u.accepted_since, 0),
       coalesce(u.rejected_since, 0), u.first_accepted_at, u.last_used_at, coalesce(u.address, ''), coalesce(u.client, ''),
       coalesce(u.read, 0), coalesce(u.read_since, 0)
FROM api_keys k JOIN projects p ON p.organization = k.organization AND p.id = k.project
LEFT JOIN members m ON m.organization = k.organization AND m.id = k.created_by
LEFT JOIN api_key_usage u ON u.organization = k.organization AND u.api_key = k.id
WHERE (k.organization = $1 OR $1 = '*') `

func scanAPIKey(row pgx.CollectableRow) (k ListedAPIKey, err error) {
	var expires, revoked, rotated, firstAccepted, lastUsed *time.Time
	var exposures []byte
	err = row.Scan(&k.Organization, &k.ID, &k.Project, &k.Environment, &k.Name, &k.Digest.Hash, &k.Digest.First, &k.Digest.Last,
		&k.IssuedAt, &expires, &revoked, &k.Revocation.Reason, &k.RatePerMinute, &k.Replaces, &k.RotatedTo, &rotated, &exposures,
		&k.Access, &k.ProjectName, &k.CreatedBy, &k.Accepted, &k.Rejected, &k.Refused, &k.AcceptedSince, &k.RejectedSince, &firstAccepted,
		&lastUsed, &k.Address, &k.Client, &k.Read, &k.ReadSince)
	if err != nil {
		return k, err
	}
	k.ExpiresAt, k.Revocation.At, k.RotatedAt = orZero(expires), orZero(revoked), orZero(rotated)
	k.FirstAcceptedAt, k.LastUsedAt = orZero(firstAccepted), orZero(lastUsed)
	return k, json.Unmarshal(exposures, &k.Exposures)
}

// orZero is the zero time for null.
func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// APIKey returns one API key, or ErrNotFound.
func (v *Views) APIKey(ctx context.Context, as pg.Organization, id string) (ListedAPIKey, error) {
	return one(ctx, v, as, scanAPIKey, selectAPIKeys+`AND k.id = $2`, id)
}

// APIKeyByHash returns the API key whose secret has a hash, of whatever organization, or ErrNotFound.
func (v *Views) APIKeyByHash(ctx context.Context, hash string) (ListedAPIKey, error) {
	return one(ctx, v, tenants.Installation, scanAPIKey, selectAPIKeys+`AND k.hash = $2`, hash)
}

// APIKeys lists at most limit API keys of a project after a position; of all projects of the organization where the project
// has no id.
func (v *Views) APIKeys(ctx context.Context, as pg.Organization, of tenants.Project, after Position, limit int) ([]ListedAPIKey, error) {
	return list(ctx, v, as, scanAPIKey, selectAPIKeys+
		`AND k.organization = $2 AND ($3 = '' OR k.project = $3) AND (k.created_at, k.id) > ($4, $5) ORDER BY k.created_at, k.id LIMIT $6`,
		of.Organization, of.ID, after.At, after.ID, limit)
}

// NewestAPIKeys lists at most limit API keys of all projects of an organization before a position, newest first, the
// revoked ones among them. The zero position is before none.
func (v *Views) NewestAPIKeys(ctx context.Context, organization pg.Organization, before Position, limit int) ([]ListedAPIKey, error) {
	return list(ctx, v, organization, scanAPIKey, selectAPIKeys+
		`AND ($3 = '' OR (k.created_at, k.id) < ($2, $3)) ORDER BY k.created_at DESC, k.id DESC LIMIT $4`, before.At, before.ID, limit)
}
