package budgets

import (
	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// A Service sets budgets of projects and keys.
type Service struct {
	Reads *snapshot.Reader
	Work  *unitofwork.Writer
	Owns  ledger.Owns
}

// check returns NoProject for another organization's project. Keys are
// not checked: an unknown one uses nothing.
func (s *Service) check(organization string, specs ...ledger.BudgetSpec) error {
	for _, spec := range specs {
		if err := s.Owns.Check(organization, spec.Project); err != nil {
			return err
		}
	}
	return nil
}
