package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

func insertOrganization(ctx context.Context, tx pgx.Tx, e tenants.OrganizationCreated) error {
	return exactlyOne(ctx, tx, `INSERT INTO organizations (organization, name, tier, created_at) VALUES ($1, $2, $3, $4)`,
		e.Organization, e.Name, e.Tier, e.At)
}

func renameOrganization(ctx context.Context, tx pgx.Tx, e tenants.OrganizationRenamed) error {
	return exactlyOne(ctx, tx, `UPDATE organizations SET name = $2 WHERE organization = $1`, e.Organization, e.Name)
}

const selectOrganizations = `SELECT organization, name, tier, created_at FROM organizations `

func scanOrganization(row pgx.CollectableRow) (o tenants.Organization, err error) {
	err = row.Scan(&o.ID, &o.Name, &o.Tier, &o.CreatedAt)
	return o, err
}

// Organization returns one organization, or ErrNotFound.
func (v *Views) Organization(ctx context.Context, as pg.Organization, id string) (tenants.Organization, error) {
	return one(ctx, v, as, scanOrganization, selectOrganizations+`WHERE `+visible+` AND organization = $2`, id)
}

// Organizations lists at most limit organizations after a position.
func (v *Views) Organizations(ctx context.Context, as pg.Organization, after Position, limit int) ([]tenants.Organization, error) {
	return list(ctx, v, as, scanOrganization, selectOrganizations+
		`WHERE `+visible+` AND (created_at, organization) > ($2, $3) ORDER BY created_at, organization LIMIT $4`, after.At, after.ID, limit)
}
