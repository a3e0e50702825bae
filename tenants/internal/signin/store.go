package signin

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A Store reads sessions, passkeys, devices and failed sign-ins.
type Store struct{ reader *query.Reader }

// NewStore returns the store of a reader.
func NewStore(reader *query.Reader) Store { return Store{reader} }

// Projections maps these events to their tables.
func Projections() unitofwork.Projections {
	return unitofwork.Join(
		unitofwork.On(insertPasskey),
		unitofwork.On(usePasskey),
		unitofwork.On(suspectPasskey),
		unitofwork.On(removePasskey),
		unitofwork.On(insertSession),
		unitofwork.On(renewSession),
		unitofwork.On(confirmSession),
		unitofwork.On(endSession),
		unitofwork.Unprojected[tenants.SessionRoleChanged](),  // sessions have their member's role
		unitofwork.Unprojected[tenants.MemberSignInsFailed](), // only in the audit
	)
}

// Erasable are the room's tables, in the order of erasure.
func Erasable() []erasure.Table {
	return []erasure.Table{
		erasure.Rows("devices", erasure.OfOrganization), erasure.Rows("sign_in_failures", erasure.OfOrganization),
		erasure.Rows("passkeys", erasure.OfOrganization), erasure.Rows("sessions", erasure.OfOrganization),
	}
}

// DeviceOf returns the device with one of some hashes of the member
// with a normal address, or ErrNotFound: before the sign-in, when no
// organization is known. The work is the same without such a member.
func (s Store) DeviceOf(ctx context.Context, email string, hashes []string, now time.Time) (tenants.Device, error) {
	return query.One(ctx, s.reader, tenants.Installation, pgx.RowToStructByPos[tenants.Device], `
		SELECT organization, member, hash, session, used_at, expires_at FROM devices
		WHERE `+query.Visible+` AND hash = ANY($3) AND expires_at > $4 AND EXISTS (
			SELECT FROM members m WHERE m.organization = devices.organization AND m.id = devices.member AND m.email = $2 AND m.removed_at IS NULL)
		LIMIT 1`, email, hashes, now)
}

// replaceDevices stores a member's device in place of those with some
// hashes, which it returns. Only the last used devices are kept.
func replaceDevices(ctx context.Context, tx pgx.Tx, device tenants.Device, instead []string) (replaced []string, err error) {
	rows, err := tx.Query(ctx, `DELETE FROM devices WHERE organization = $1 AND member = $2 AND (hash = ANY($3) OR expires_at <= $4) RETURNING hash`,
		device.Organization, device.Member, instead, device.UsedAt)
	if err != nil {
		return nil, err
	}
	if replaced, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return nil, err
	}
	err = query.ExactlyOne(ctx, tx, `INSERT INTO devices (organization, member, hash, session, used_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		device.Organization, device.Member, device.Hash, device.Session, device.UsedAt, device.ExpiresAt)
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `
		DELETE FROM devices WHERE organization = $1 AND member = $2 AND hash IN (
			SELECT hash FROM devices WHERE organization = $1 AND member = $2 ORDER BY used_at DESC, hash OFFSET $3)`,
		device.Organization, device.Member, tenants.MaxDevices)
	return replaced, err
}

// forgetDevices deletes a member's devices but those with some hashes.
func forgetDevices(ctx context.Context, tx pgx.Tx, organization pg.Organization, member string, except []string) error {
	_, err := tx.Exec(ctx, `DELETE FROM devices WHERE organization = $1 AND member = $2 AND hash <> ALL($3)`, organization, member, except)
	return err
}

// forgetDeviceOf deletes the device in which a session was started.
func forgetDeviceOf(ctx context.Context, tx pgx.Tx, organization pg.Organization, session string) error {
	_, err := tx.Exec(ctx, `DELETE FROM devices WHERE organization = $1 AND session = $2`, organization, session)
	return err
}

const selectFailures = `SELECT organization, member, failed, refused, networks, since, told_at, refusals_reported_at FROM sign_in_failures `

func scanFailures(row pgx.CollectableRow) (f tenants.SignInFailures, err error) {
	var since, reported, refusals *time.Time
	err = row.Scan(&f.Organization, &f.Member, &f.Failed, &f.Refused, &f.Networks, &since, &reported, &refusals)
	f.Since, f.ReportedAt, f.RefusalsAt = query.OrZero(since), query.OrZero(reported), query.OrZero(refusals)
	return f, err
}

// SignInFailures are a member's unreported failures.
func (s Store) SignInFailures(ctx context.Context, organization pg.Organization, member string) (tenants.SignInFailures, error) {
	failures, err := query.One(ctx, s.reader, organization, scanFailures, selectFailures+`WHERE organization = $1 AND member = $2`, member)
	if errors.Is(err, tenants.ErrNotFound) {
		return tenants.SignInFailures{Organization: string(organization), Member: member}, nil
	}
	return failures, err
}

// DueSignInFailures are at most limit unreported failures,
// of all organizations, last reported before a time.
// Organizations to be deleted wait: their audit is closed.
func (s Store) DueSignInFailures(ctx context.Context, reported time.Time, limit int) ([]tenants.SignInFailures, error) {
	return query.List(ctx, s.reader, tenants.Installation, scanFailures, selectFailures+
		`WHERE `+query.Visible+` AND failed + refused > 0 AND told_at <= $2
			AND EXISTS (SELECT FROM organizations o WHERE o.organization = sign_in_failures.organization AND o.deletion = '')
		ORDER BY told_at LIMIT $3`, reported, limit)
}

// keepSignInFailures stores a member's unreported failures.
func keepSignInFailures(ctx context.Context, tx pgx.Tx, f tenants.SignInFailures) error {
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO sign_in_failures (organization, member, failed, refused, networks, since, told_at, refusals_reported_at)
		VALUES ($1, $2, $3, $4, coalesce($5, '{}'::text[]), $6, $7, $8)
		ON CONFLICT (organization, member) DO UPDATE SET failed = $3, refused = $4, networks = coalesce($5, '{}'::text[]), since = $6, told_at = $7,
			refusals_reported_at = $8`,
		f.Organization, f.Member, f.Failed, f.Refused, f.Networks, query.OrNull(f.Since), query.OrNull(f.ReportedAt), query.OrNull(f.RefusalsAt))
}

func insertPasskey(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.PasskeyRegistered) error {
	c := e.Credential
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO passkeys (organization, id, member, name, credential, public_key, counter, transports, model, backup_eligible, backed_up, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, coalesce($8, '{}'::text[]), coalesce($9, ''::bytea), $10, $11, $12)`,
		e.Organization, e.Passkey, e.Member, e.Name, c.ID, c.PublicKey, c.Counter, c.Transports, c.Model, c.BackupEligible, c.BackedUp, e.At)
}

func usePasskey(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.PasskeyUsed) error {
	return query.ExactlyOne(ctx, tx, `UPDATE passkeys SET counter = $3, backed_up = $4, used_at = $5 WHERE organization = $1 AND id = $2`,
		at.Organization, e.Passkey, e.Counter, e.BackedUp, e.At)
}

func suspectPasskey(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.PasskeySuspected) error {
	return query.ExactlyOne(ctx, tx, `UPDATE passkeys SET suspected_at = $3 WHERE organization = $1 AND id = $2`, at.Organization, e.Passkey, e.At)
}

func removePasskey(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.PasskeyRemoved) error {
	return query.ExactlyOne(ctx, tx, `DELETE FROM passkeys WHERE organization = $1 AND id = $2`, at.Organization, e.Passkey)
}

const selectPasskeys = `
SELECT organization, id, member, name, credential, public_key, counter, transports, model, backup_eligible, backed_up, created_at,
       used_at, suspected_at
FROM passkeys `

func scanPasskey(row pgx.CollectableRow) (p tenants.Passkey, err error) {
	var used, suspected *time.Time
	c := &p.Credential
	err = row.Scan(&p.Organization, &p.ID, &p.Member, &p.Name, &c.ID, &c.PublicKey, &c.Counter, &c.Transports, &c.Model,
		&c.BackupEligible, &c.BackedUp, &p.RegisteredAt, &used, &suspected)
	p.UsedAt, p.SuspectedAt = query.OrZero(used), query.OrZero(suspected)
	return p, err
}

// Passkey returns one passkey, or ErrNotFound.
func (s Store) Passkey(ctx context.Context, as pg.Organization, id string) (tenants.Passkey, error) {
	return query.One(ctx, s.reader, as, scanPasskey, selectPasskeys+`WHERE `+query.Visible+` AND id = $2`, id)
}

// Passkeys lists the passkeys of a member, oldest first.
func (s Store) Passkeys(ctx context.Context, as pg.Organization, member string) ([]tenants.Passkey, error) {
	return query.List(ctx, s.reader, as, scanPasskey, selectPasskeys+`WHERE `+query.Visible+` AND member = $2 ORDER BY created_at, id`, member)
}

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

const (
	sessionsKept = 24 * time.Hour // after their expiry
	failuresKept = 24 * time.Hour // after their report, which exceeds the interval of reports
)

// Tables are the room's tables, for a prune.Pruner.
func Tables(clock func() time.Time) []prune.Table {
	now := prune.Ago(0, clock)
	return []prune.Table{
		prune.Rows{
			Table: "sessions", Bound: "20 open ones of each member, and a day of those that have expired", Age: "expires_at",
			Before: prune.Ago(sessionsKept, clock),
		},
		prune.Rows{Table: "devices", Bound: "10 of each member, until they expire", Age: "expires_at", Before: now, AppendOnly: true},
		prune.Rows{
			Table: "sign_in_failures", Bound: "a row for each member who has some, until a day after they were reported", Age: "told_at",
			Before: prune.Ago(failuresKept, clock), Only: "failed + refused = 0",
		},
		prune.Rows{
			Table: "passkeys", Bound: "20 of each member", Age: "created_at", Before: now,
			Only: `EXISTS (SELECT FROM members m WHERE m.organization = t.organization AND m.id = t.member AND m.removed_at IS NOT NULL)`,
		},
	}
}
