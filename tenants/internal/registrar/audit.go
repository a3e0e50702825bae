package registrar

import (
	"context"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// AuditEvents lists lines of the audit of an organization that the caller reaches, or of the installation, newest first: those
// with smaller numbers than before, 0 for all. Invalid says what of the filter no line could match.
func (r *Registrar) AuditEvents(ctx context.Context, caller tenants.Caller, filter tenants.AuditFilter,
	before int64, limit int) ([]tenants.AuditEvent, error) {
	if err := filter.Check(); err != nil {
		return nil, err
	}
	if err := r.owner(ctx, caller, filter.Organization); err != nil {
		return nil, err
	}
	return r.Views.AuditEvents(ctx, pg.Organization(caller.Organization), filter, before, limit)
}
