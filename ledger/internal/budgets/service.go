package budgets

import (
	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// A Service gives projects and keys a share of their organization's quota.
type Service struct {
	Reads *snapshot.Reader
	Work  *unitofwork.Writer
	Owns  Owns
}

// Owns reports whether a project is one of an organization's.
type Owns func(organization, project string) bool

// check returns NoProject for who is a project of others. A key is not looked for: one that there is not spends nothing.
func (s *Service) check(organization string, specs ...ledger.BudgetSpec) error {
	for _, spec := range specs {
		if spec.Project != "" && !s.Owns(organization, spec.Project) {
			return ledger.NoProject{Project: spec.Project}
		}
	}
	return nil
}
