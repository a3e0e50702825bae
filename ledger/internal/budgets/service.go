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
	Owns  ledger.Owns
}

// check returns NoProject for who is a project of others. A key is not looked
// for: one that there is not spends nothing.
func (s *Service) check(organization string, specs ...ledger.BudgetSpec) error {
	for _, spec := range specs {
		if err := s.Owns.Check(organization, spec.Project); err != nil {
			return err
		}
	}
	return nil
}
