package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	tenants "github.com/weirlog/weir/tenants/app"
)

// orphans checks that tenants, the last module, knows the organizations and
// projects of which the others hold something. What a running installation
// makes is in tenants first.
func (c *databaseChecker) orphans(ctx context.Context, m *moduleChecker) {
	if m.holders != nil {
		c.look(ctx, "orphans", m.name, "weir resume looks for them, too.", func(ctx context.Context) error {
			return pg.SnapshotAsSystem(ctx, m.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil { // the check has its own: many projects in many days take seconds
					return err
				}
				held, err := m.holders(ctx, tx)
				c.held = append(c.held, held...)
				return err
			})
		})
		return
	}
	var unknown []erasure.Deletion
	ok := c.look(ctx, "orphans", m.name, "Look at the role's rights.", func(ctx context.Context) error {
		return pg.SnapshotAsSystem(ctx, m.pool, func(tx pgx.Tx) (err error) {
			unknown, err = tenants.Unknown(ctx, tx, c.held)
			return err
		})
	})
	switch {
	case !ok:
	case len(unknown) > 0:
		ids := make([]string, len(unknown))
		for i, of := range unknown {
			if ids[i] = of.Organization; of.Project != "" {
				ids[i] = of.Project + " of " + of.Organization
			}
		}
		c.report.add(Fail, "orphans", m.name, fmt.Sprintf("%d organizations and projects have books, entries or groups, and tenants does not know them: %s",
			len(ids), firstFew(ids)), "Stop the services and run weir resume: it lists them, and readopts or erases them by choice.")
	default:
		c.report.add(OK, "orphans", m.name, "knows every organization and project that the other modules hold something of", "")
	}
}
