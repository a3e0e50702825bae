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
