package registry

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A Store reads organizations, projects,
// service tokens and security policies.
type Store struct{ reader *query.Reader }

// NewStore returns the store of a reader.
func NewStore(reader *query.Reader) Store { return Store{reader} }

// Projections maps these events to their tables.
func Projections() unitofwork.Projections {
	return unitofwork.Join(
		unitofwork.On(insertOrganization),
		unitofwork.On(renameOrganization),
		unitofwork.On(insertProject),
		unitofwork.On(renameProject),
		unitofwork.On(insertServiceToken),
		unitofwork.On(revokeServiceToken),
		unitofwork.On(setSecurityPolicy),
		unitofwork.On(requestDeletion),
		unitofwork.On(cancelDeletion),
		unitofwork.On(beginDeletion),
		unitofwork.On(finishDeletion),
	)
}

// count is how many projects or service tokens an organization has at now.
func count(ctx context.Context, in *query.Reader, organization pg.Organization, what tenants.Countable, now time.Time) (int, error) {
	counted, args := `projects WHERE organization = $1`, []any(nil)
	switch what {
	case tenants.CountProjects:
	case tenants.CountProjectsKept:
		counted, args = projectsKept, []any{now.Add(-tenants.EndedKept)}
	case tenants.CountServiceTokens:
		counted = `service_tokens WHERE organization = $1 AND revoked_at IS NULL`
	case tenants.CountServiceTokensKept:
		counted, args = `service_tokens WHERE organization = $1 AND coalesce(revoked_at, 'infinity') > $2`, []any{now.Add(-tenants.EndedKept)}
	default:
		panic(fmt.Sprintf("BUG: the registry does not count %q", what))
	}
	return query.One(ctx, in, organization, pgx.RowTo[int], `SELECT count(*) FROM `+counted, args...)
}

// projectsKept are the projects of $1, and those
// deleted after $2. Until its erasure one is both.
const projectsKept = `(SELECT id FROM projects WHERE organization = $1
	UNION SELECT id FROM deletions WHERE organization = $1 AND project <> '' AND state <> 'cancelled'
	  AND coalesce(finished_at, 'infinity') > $2) kept`

// Erasable are the room's tables, in the order of erasure.
func Erasable() []erasure.Table {
	const ofProject = `organization = $1 AND ($2 = '' OR id = $2)`
	return []erasure.Table{
		erasure.Rows("security_policies", erasure.OfOrganization), erasure.Rows("service_tokens", erasure.OfOrganization),
		erasure.Rows("projects", ofProject), erasure.Rows("organizations", erasure.OfOrganization),
	}
}

func counted(as ...tenants.Countable) unitofwork.Counted {
	return unitofwork.Counted{Count: count, As: as}
}
