package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/tenants"
)

func insertMember(ctx context.Context, tx pgx.Tx, e tenants.MemberAdded) error {
	return exactlyOne(ctx, tx, `
		INSERT INTO members (organization, id, email, name, role, password_hash, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		e.Organization, e.Member, e.Email, e.Name, e.Role, e.PasswordHash, e.At)
}

const selectMembers = `SELECT organization, id, email, name, role, password_hash, created_at FROM members `

func scanMember(row pgx.CollectableRow) (m tenants.Member, err error) {
	err = row.Scan(&m.Organization, &m.ID, &m.Email, &m.Name, &m.Role, &m.PasswordHash, &m.AddedAt)
	return m, err
}

// Member returns one member, or ErrNotFound.
func (v *Views) Member(ctx context.Context, as, id string) (tenants.Member, error) {
	return one(ctx, v, as, scanMember, selectMembers+`WHERE `+visible+` AND id = $2`, id)
}

// MemberByEmail returns the member of any organization with a normal address, or ErrNotFound. It is for signing in,
// before anybody can say which organization they are of.
func (v *Views) MemberByEmail(ctx context.Context, email string) (tenants.Member, error) {
	return one(ctx, v, tenants.Installation, scanMember, selectMembers+`WHERE `+visible+` AND email = $2`, email)
}
