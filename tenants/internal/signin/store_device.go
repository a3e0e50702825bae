package signin

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

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
