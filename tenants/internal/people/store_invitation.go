package people

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func insertInvitation(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.InvitationMade) error {
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO invitations (organization, id, email, role, made_by, code_hash, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		e.Organization, e.Invitation, e.Email, e.Role, e.By, e.Digest.Hash, e.At, e.ExpiresAt)
}

const updateInvitation = `UPDATE invitations SET `

const whereInvitation = ` WHERE organization = $1 AND id = $2`

func resendInvitation(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.InvitationResent) error {
	return query.ExactlyOne(ctx, tx, updateInvitation+`code_hash = $3, expires_at = $4, made_by = coalesce(nullif($5, ''), made_by)`+whereInvitation,
		at.Organization, e.Invitation, e.Digest.Hash, e.ExpiresAt, e.By)
}

func revokeInvitation(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.InvitationRevoked) error {
	return query.ExactlyOne(ctx, tx, updateInvitation+`revoked_at = $3`+whereInvitation, at.Organization, e.Invitation, e.At)
}

func acceptInvitation(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.InvitationAccepted) error {
	return query.ExactlyOne(ctx, tx, updateInvitation+`accepted_at = $3, member = $4`+whereInvitation,
		at.Organization, e.Invitation, e.At, e.Member)
}

const selectInvitations = `
SELECT organization, id, email, role, made_by, code_hash, created_at, expires_at, revoked_at, accepted_at, member
FROM (SELECT i.* FROM invitations i JOIN organizations o USING (organization) WHERE o.deletion = '') invitations `

func scanInvitation(row pgx.CollectableRow) (i tenants.Invitation, err error) {
	var revoked, accepted *time.Time
	err = row.Scan(&i.Organization, &i.ID, &i.Email, &i.Role, &i.By, &i.CodeHash, &i.MadeAt, &i.ExpiresAt, &revoked, &accepted, &i.Member)
	i.RevokedAt, i.AcceptedAt = query.OrZero(revoked), query.OrZero(accepted)
	return i, err
}

// Invitation returns one invitation, or ErrNotFound.
func (s Store) Invitation(ctx context.Context, as pg.Organization, id string) (tenants.Invitation, error) {
	return query.One(ctx, s.reader, as, scanInvitation, selectInvitations+`WHERE `+query.Visible+` AND id = $2`, id)
}

// InvitationByCode returns the invitation of any
// organization whose code has a hash, or ErrNotFound.
func (s Store) InvitationByCode(ctx context.Context, hash string) (tenants.Invitation, error) {
	return query.One(ctx, s.reader, tenants.Installation, scanInvitation, selectInvitations+`WHERE `+query.Visible+` AND code_hash = $2`, hash)
}

// Invitations lists at most limit invitations of
// an organization after a position, in any state.
func (s Store) Invitations(ctx context.Context, as, organization pg.Organization, after query.Position, limit int) ([]tenants.Invitation, error) {
	return query.List(ctx, s.reader, as, scanInvitation, selectInvitations+
		`WHERE `+query.Visible+` AND organization = $2 AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5`,
		organization, after.At, after.ID, limit)
}

const unsettled = ` AND revoked_at IS NULL AND accepted_at IS NULL`

// UnsettledInvitations lists at most limit invitations of an organization
// before a position, newest first, neither accepted nor revoked.
func (s Store) UnsettledInvitations(ctx context.Context, organization pg.Organization, before query.Position, limit int) ([]tenants.Invitation, error) {
	return query.List(ctx, s.reader, organization, scanInvitation, selectInvitations+`
		WHERE organization = $1 AND ($3 = '' OR (created_at, id) < ($2, $3))`+unsettled+`
		ORDER BY created_at DESC, id DESC LIMIT $4`, before.At, before.ID, limit)
}

// InvitationsBy lists the open invitations
// that a member created or sent last.
func (s Store) InvitationsBy(ctx context.Context, organization pg.Organization, member string) ([]tenants.Invitation, error) {
	return query.List(ctx, s.reader, organization, scanInvitation, selectInvitations+`
		WHERE organization = $1 AND made_by = $2`+unsettled+` ORDER BY created_at, id`, member)
}

// IsMember reports whether an organization has a member with a normal address.
func (s Store) IsMember(ctx context.Context, organization pg.Organization, email string) (bool, error) {
	return query.One(ctx, s.reader, organization, pgx.RowTo[bool],
		`SELECT EXISTS (SELECT FROM members WHERE organization = $1 AND email = $2 AND removed_at IS NULL)`, email)
}

// IsInvited reports whether an organization
// has an open invitation for a normal address.
func (s Store) IsInvited(ctx context.Context, organization pg.Organization, email string) (bool, error) {
	return query.One(ctx, s.reader, organization, pgx.RowTo[bool],
		`SELECT EXISTS (SELECT FROM invitations WHERE organization = $1 AND email = $2`+unsettled+`)`, email)
}
