package postgres_test

import (
	"fmt"
	"testing"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// A whole check takes as many statements for thirty organizations as for one.
func TestAWholeCheckAsksOnce(t *testing.T) {
	pool, statements := pgtest.Counted(t, pgtest.Open(t, postgres.Schema, postgres.Migrations()...))
	l := checkedLedger{ledgertest.On(t, pool)}
	asked := func() int64 {
		return statements.Of(func() {
			if found := l.verified(t); len(found) > 0 {
				t.Errorf("found %v", found)
			}
		})
	}
	begin := func(organizations int) {
		for n := range organizations {
			organization := fmt.Sprintf("org_%d_%d", organizations, n)
			l.Start(t, organization, ledger.Scale)
			l.chargeRange(t, organization, 1, l.Now())
		}
	}
	begin(1)
	one := asked()
	begin(30)
	if many := asked(); many != one || one == 0 {
		t.Errorf("%d statements for one organization, %d for thirty", one, many)
	}
}
