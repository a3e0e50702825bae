package registry

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func insertOrganization(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.OrganizationCreated) error {
	return query.ExactlyOne(ctx, tx, `INSERT INTO organizations (organization, name, tier, created_at) VALUES ($1, $2, $3, $4)`,
		e.Organization, e.Name, e.Tier, e.At)
}

func renameOrganization(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.OrganizationRenamed) error {
	return query.ExactlyOne(ctx, tx, `UPDATE organizations SET name = $2 WHERE organization = $1`, e.Organization, e.Name)
}

const selectOrganizations = `SELECT organization, name, tier, created_at FROM organizations `

func scanOrganization(row pgx.CollectableRow) (o tenants.Organization, err error) {
	err = row.Scan(&o.ID, &o.Name, &o.Tier, &o.CreatedAt)
	return o, err
}

// Organization returns one organization, or ErrNotFound.
func (s Store) Organization(ctx context.Context, as pg.Organization, id string) (tenants.Organization, error) {
	return query.One(ctx, s.reader, as, scanOrganization, selectOrganizations+`WHERE `+query.Visible+` AND organization = $2 AND deletion = ''`, id)
}

// Organizations lists at most limit organizations after a position.
func (s Store) Organizations(ctx context.Context, as pg.Organization, after query.Position, limit int) ([]tenants.Organization, error) {
	return query.List(ctx, s.reader, as, scanOrganization, selectOrganizations+
		`WHERE `+query.Visible+` AND deletion = '' AND (created_at, organization) > ($2, $3) ORDER BY created_at, organization LIMIT $4`, after.At, after.ID, limit)
}

// Exists is ErrNotFound for an organization that is to be deleted.
func Exists(ctx context.Context, in *query.Reader, organization pg.Organization) error {
	hidden, err := query.One(ctx, in, organization, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM organizations WHERE organization = $1 AND deletion <> '')`)
	if err == nil && hidden {
		err = fmt.Errorf("organization %q is to be deleted: %w", organization, tenants.ErrNotFound)
	}
	return err
}
