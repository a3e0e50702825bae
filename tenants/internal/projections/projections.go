package projections

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// All are the projections of every concept.
func All() unitofwork.Projections {
	return unitofwork.Join(registry.Projections(), people.Projections(), keys.Projections(), signin.Projections(), notifications.Projections(),
		audit.Projections())
}

// NewEvents returns the store of a pool's events, which are
// projected and audited as they are appended.
func NewEvents(pool *pgxpool.Pool) *unitofwork.Events {
	return unitofwork.NewEvents(pool, All(), audit.Write)
}
