package registry

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func insertProject(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.ProjectCreated) error {
	return query.ExactlyOne(ctx, tx, `INSERT INTO projects (organization, id, name, created_at) VALUES ($1, $2, $3, $4)`,
		e.Organization, e.Project, e.Name, e.At)
}

func renameProject(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.ProjectRenamed) error {
	return query.ExactlyOne(ctx, tx, `UPDATE projects SET name = $3 WHERE organization = $1 AND id = $2`, at.Organization, e.Project, e.Name)
}

const selectProjects = `SELECT organization, id, name, created_at FROM projects `

func scanProject(row pgx.CollectableRow) (p tenants.Project, err error) {
	err = row.Scan(&p.Organization, &p.ID, &p.Name, &p.CreatedAt)
	return p, err
}

// Project returns one project, or ErrNotFound.
func (s Store) Project(ctx context.Context, as pg.Organization, id string) (tenants.Project, error) {
	return query.One(ctx, s.reader, as, scanProject, selectProjects+`WHERE `+query.Visible+` AND id = $2 AND deletion = ''`, id)
}

// Projects lists at most limit projects of an organization after a position.
func (s Store) Projects(ctx context.Context, as, organization pg.Organization, after query.Position, limit int) ([]tenants.Project, error) {
	return query.List(ctx, s.reader, as, scanProject, selectProjects+
		`WHERE `+query.Visible+` AND organization = $2 AND deletion = '' AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5`,
		organization, after.At, after.ID, limit)
}
