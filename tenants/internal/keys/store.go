package keys

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func insert(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.APIKeyIssued) error {
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO api_keys (organization, id, project, environment, name, hash, first, last, created_at, expires_at,
		                      rate_per_minute, replaces, created_by, access, lenient, origins)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, coalesce($16, '{}'::text[]))`,
		e.Organization, e.APIKey, e.Project, e.Environment, e.Name, e.Digest.Hash, e.Digest.First, e.Digest.Last,
		e.At, e.ExpiresAt, e.RatePerMinute, e.Replaces, at.Origin.Actor, e.Access, e.Lenient, e.Origins)
}

func revoke(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.APIKeyRevoked) error {
	return query.ExactlyOne(ctx, tx, `UPDATE api_keys SET revoked_at = $3, revoke_reason = $4 WHERE organization = $1 AND id = $2`,
		at.Organization, e.APIKey, e.At, e.Reason)
}

func rotate(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.APIKeyRotated) error {
	return query.ExactlyOne(ctx, tx, `UPDATE api_keys SET rotated_to = $3, rotated_at = $4, expires_at = $5 WHERE organization = $1 AND id = $2`,
		at.Organization, e.APIKey, e.To, e.At, e.ExpiresAt)
}

func change(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.APIKeyChanged) error {
	return query.ExactlyOne(ctx, tx, `
		UPDATE api_keys SET name = $3, rate_per_minute = $4, access = $5, lenient = $6, origins = coalesce($7, '{}'::text[])
		WHERE organization = $1 AND id = $2`, at.Organization, e.APIKey, e.Name, e.RatePerMinute, e.Access, e.Lenient, e.Origins)
}

func curtail(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.APIKeyCurtailed) error {
	return query.ExactlyOne(ctx, tx, `UPDATE api_keys SET expires_at = $3 WHERE organization = $1 AND id = $2`,
		at.Organization, e.APIKey, e.ExpiresAt)
}

func expose(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.APIKeyExposed) error {
	exposure, err := json.Marshal(tenants.Exposure{Kind: e.Kind, Where: e.Where, Source: e.Source, Address: e.Address, At: e.At})
	if err != nil {
		return err
	}
	return query.ExactlyOne(ctx, tx, `UPDATE api_keys SET exposures = exposures || $3::jsonb WHERE organization = $1 AND id = $2`,
		at.Organization, e.APIKey, string(exposure))
}

// A Store reads API keys.
type Store struct{ reader *query.Reader }

// NewStore returns the store of a reader.
func NewStore(reader *query.Reader) Store { return Store{reader} }

// Projections maps the events of API keys to their tables.
func Projections() unitofwork.Projections {
	return unitofwork.Join(
		unitofwork.On(insert),
		unitofwork.On(revoke),
		unitofwork.On(rotate),
		unitofwork.On(change),
		unitofwork.On(curtail),
		unitofwork.On(expose),
	)
}

// A Listed is an API key with its usage and creator.
type Listed struct {
	tenants.APIKey
	tenants.KeyUsage
	ProjectName string
	CreatedBy   string // name of a member; id of another creator
}

const selectKeys = `
SELECT k.organization, k.id, k.project, k.environment, k.name, k.hash, k.first, k.last, k.created_at, k.expires_at, k.revoked_at,
       k.revoke_reason, k.rate_per_minute, k.replaces, k.rotated_to, k.rotated_at, k.exposures, k.access, k.lenient, k.origins,
       p.name, coalesce(m.name, k.created_by),
       coalesce(u.accepted, 0), coalesce(u.rejected, 0), coalesce(u.refused, 0), coalesce(u.accepted_since, 0),
       coalesce(u.rejected_since, 0), u.first_accepted_at, u.last_used_at, coalesce(u.address, ''), coalesce(u.client, ''),
       coalesce(u.read, 0), coalesce(u.read_since, 0)
FROM api_keys k JOIN projects p ON p.organization = k.organization AND p.id = k.project
LEFT JOIN members m ON m.organization = k.organization AND m.id = k.created_by
LEFT JOIN api_key_usage u ON u.organization = k.organization AND u.api_key = k.id
WHERE (k.organization = $1 OR $1 = '*') AND p.deletion = '' `

func scan(row pgx.CollectableRow) (k Listed, err error) {
	var expires, revoked, rotated, firstAccepted, lastUsed *time.Time
	var exposures []byte
	err = row.Scan(&k.Organization, &k.ID, &k.Project, &k.Environment, &k.Name, &k.Digest.Hash, &k.Digest.First, &k.Digest.Last,
		&k.IssuedAt, &expires, &revoked, &k.Revocation.Reason, &k.RatePerMinute, &k.Replaces, &k.RotatedTo, &rotated, &exposures,
		&k.Access, &k.Lenient, &k.Origins, &k.ProjectName, &k.CreatedBy, &k.Accepted, &k.Rejected, &k.Refused, &k.AcceptedSince, &k.RejectedSince, &firstAccepted,
		&lastUsed, &k.Address, &k.Client, &k.Read, &k.ReadSince)
	if err != nil {
		return k, err
	}
	k.ExpiresAt, k.Revocation.At, k.RotatedAt = query.OrZero(expires), query.OrZero(revoked), query.OrZero(rotated)
	k.FirstAcceptedAt, k.LastUsedAt = query.OrZero(firstAccepted), query.OrZero(lastUsed)
	return k, json.Unmarshal(exposures, &k.Exposures)
}

// Key returns one API key, or ErrNotFound.
func (s Store) Key(ctx context.Context, as pg.Organization, id string) (Listed, error) {
	return query.One(ctx, s.reader, as, scan, selectKeys+`AND k.id = $2`, id)
}

// ByHash returns the API key whose secret has
// a hash, of any organization, or ErrNotFound.
func (s Store) ByHash(ctx context.Context, hash string) (Listed, error) {
	return query.One(ctx, s.reader, tenants.Installation, scan, selectKeys+`AND k.hash = $2`, hash)
}

// List lists at most limit API keys of a project after a
// position; of the whole organization if the project has no id.
func (s Store) List(ctx context.Context, as pg.Organization, of tenants.Project, after query.Position, limit int) ([]Listed, error) {
	return query.List(ctx, s.reader, as, scan, selectKeys+
		`AND k.organization = $2 AND ($3 = '' OR k.project = $3) AND (k.created_at, k.id) > ($4, $5) ORDER BY k.created_at, k.id LIMIT $6`,
		of.Organization, of.ID, after.At, after.ID, limit)
}

// Newest lists at most limit API keys of an organization before a position,
// newest first, including revoked ones. The zero position is the newest.
func (s Store) Newest(ctx context.Context, organization pg.Organization, before query.Position, limit int) ([]Listed, error) {
	return query.List(ctx, s.reader, organization, scan, selectKeys+
		`AND ($3 = '' OR (k.created_at, k.id) < ($2, $3)) ORDER BY k.created_at DESC, k.id DESC LIMIT $4`, before.At, before.ID, limit)
}

// Active lists the keys of a project that are in force, those that end first before the others.
func (s Store) Active(ctx context.Context, organization pg.Organization, project string, now time.Time) ([]Listed, error) {
	return query.List(ctx, s.reader, organization, scan, selectKeys+`AND k.project = $2 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $3)
		ORDER BY k.expires_at, k.created_at, k.id`, project, now)
}

// Began reports whether entries came with any key of a project.
func (s Store) Began(ctx context.Context, organization pg.Organization, project string) (bool, error) {
	return query.One(ctx, s.reader, organization, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM api_keys k
		JOIN api_key_usage u ON u.organization = k.organization AND u.api_key = k.id
		WHERE k.organization = $1 AND k.project = $2 AND u.first_accepted_at IS NOT NULL)`, project)
}

// count is how many keys an organization has, in force or kept.
func count(ctx context.Context, in *query.Reader, organization pg.Organization, what tenants.Countable, now time.Time) (int, error) {
	condition, since := `revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`, now
	if what == tenants.CountAPIKeysKept {
		condition, since = `coalesce(least(revoked_at, expires_at), 'infinity') > $2`, now.Add(-tenants.EndedKept)
	}
	return query.One(ctx, in, organization, pgx.RowTo[int], `SELECT count(*) FROM api_keys WHERE organization = $1 AND `+condition, since)
}

// Erasable are the room's tables, in the order of erasure.
func Erasable() []erasure.Table {
	const ofKeys = `organization = $1 AND ($2 = '' OR api_key IN (SELECT id FROM api_keys WHERE organization = $1 AND project = $2))`
	return []erasure.Table{erasure.Rows("api_key_users", ofKeys), erasure.Rows("api_key_usage", ofKeys), erasure.Rows("api_keys", erasure.OfProject)}
}

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

// Tables are those of the room, for a prune.Pruner.
func Tables(clock func() time.Time, forget bus.ForgetCredentials) []prune.Table {
	return []prune.Table{
		bus.EndedCredentials{
			Table: "api_keys", Bound: "1,000 in force of an organization, and 90 days of those that have ended",
			Ended: "least(revoked_at, expires_at)", Clock: clock, Forget: forget,
		},
		ofGoneKeys("api_key_usage", "a row for each API key", clock),
		ofGoneKeys("api_key_users", "the 20 newest users of each API key", clock),
	}
}

func ofGoneKeys(table, keeps string, clock func() time.Time) prune.Rows {
	return prune.Rows{
		Table: table, Bound: keeps, Age: "last_used_at", Before: prune.Ago(0, clock),
		Only: `NOT EXISTS (SELECT FROM api_keys k WHERE k.organization = t.organization AND k.id = t.api_key)`,
	}
}
