package keys

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// AddUsage adds to the sums of keys. tx must
// act as the system. Unknown keys are ignored.
func AddUsage(ctx context.Context, tx pgx.Tx, used []tenants.UsedAPIKey) error {
	var batch pgx.Batch
	for _, u := range used {
		batch.Queue(addUsage, u.Organization, u.APIKey, u.Accepted, u.Rejected, u.Refused, query.OrNull(u.FirstAcceptedAt), u.LastUsedAt,
			u.Address, u.Client, u.Read)
		batch.Queue(addUser, u.Organization, u.APIKey, u.LastUsedAt, u.Address, u.Client)
		batch.Queue(forgetUsers, u.Organization, u.APIKey, maxKeyUsers)
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// maxKeyUsers is how many users of a key are stored.
const maxKeyUsers = 20

const addUsage = `
INSERT INTO api_key_usage AS u (organization, api_key, accepted, rejected, refused, accepted_since, rejected_since,
                                first_accepted_at, last_used_at, address, client, read, read_since)
SELECT k.organization, k.id, $3::bigint, $4::bigint, $5, CASE WHEN $7 > k.rotated_at THEN $3::bigint ELSE 0 END,
       CASE WHEN $7 > k.rotated_at THEN $4::bigint ELSE 0 END, $6, $7, $8, $9, $10::bigint,
       CASE WHEN $7 > k.rotated_at THEN $10::bigint ELSE 0 END
FROM api_keys k WHERE k.organization = $1 AND k.id = $2
ON CONFLICT (organization, api_key) DO UPDATE SET
    accepted = u.accepted + excluded.accepted, rejected = u.rejected + excluded.rejected, refused = u.refused + excluded.refused,
    accepted_since = u.accepted_since + excluded.accepted_since, rejected_since = u.rejected_since + excluded.rejected_since,
    read = u.read + excluded.read, read_since = u.read_since + excluded.read_since,
    first_accepted_at = least(u.first_accepted_at, excluded.first_accepted_at),
    last_used_at = greatest(u.last_used_at, excluded.last_used_at),
    address = CASE WHEN excluded.last_used_at < u.last_used_at THEN u.address ELSE excluded.address END,
    client = CASE WHEN excluded.last_used_at < u.last_used_at THEN u.client ELSE excluded.client END`

const addUser = `
INSERT INTO api_key_users AS u (organization, api_key, address, client, last_used_at)
SELECT k.organization, k.id, $4, $5, $3 FROM api_keys k WHERE k.organization = $1 AND k.id = $2
ON CONFLICT (organization, api_key, address, client) DO UPDATE SET last_used_at = greatest(u.last_used_at, excluded.last_used_at)`

const forgetUsers = `
DELETE FROM api_key_users WHERE organization = $1 AND api_key = $2 AND (address, client) IN
    (SELECT address, client FROM api_key_users WHERE organization = $1 AND api_key = $2 ORDER BY last_used_at DESC, address, client OFFSET $3)`

// Users lists recent users of an API key, the last one first.
func (s Store) Users(ctx context.Context, organization pg.Organization, key string) ([]tenants.KeyUser, error) {
	return query.List(ctx, s.reader, organization, pgx.RowToStructByPos[tenants.KeyUser], `
		SELECT address, client, last_used_at FROM api_key_users WHERE `+query.Visible+` AND api_key = $2
		ORDER BY last_used_at DESC, address, client`, key)
}
