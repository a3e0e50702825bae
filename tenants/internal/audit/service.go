package audit

import (
	"context"
	"errors"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// Organizations finds organizations that a caller may access.
type Organizations interface {
	Organization(ctx context.Context, caller tenants.Caller, id string) (tenants.Organization, error)
}

// A Service serves audits.
type Service struct {
	store         Store
	organizations Organizations
}

// NewService returns a service.
func NewService(store Store, organizations Organizations) *Service {
	return &Service{store, organizations}
}

// Events lists lines of the audit of an organization that the
// caller may access, or of the installation, newest first, with
// numbers below before (0: all). Operators see what is left of
// a deleted one's. Invalid for a filter that no line can match.
func (s *Service) Events(ctx context.Context, caller tenants.Caller, filter tenants.AuditFilter, before int64, limit int) ([]tenants.AuditEvent, error) {
	if err := filter.Check(); err != nil {
		return nil, err
	}
	var unknown error
	if filter.Organization != tenants.Installation || !caller.IsOperator() {
		_, unknown = s.organizations.Organization(ctx, caller, filter.Organization)
	}
	if unknown != nil && (!caller.IsOperator() || !errors.Is(unknown, tenants.ErrNotFound)) {
		return nil, unknown
	}
	lines, err := s.store.Events(ctx, pg.Organization(caller.Organization), filter, before, limit)
	if err == nil && len(lines) == 0 {
		err = unknown
	}
	return lines, err
}
