package booking_test

import (
	"testing"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// A batch takes as many statements for a thousand records as for one:
// for days, books and usage.
func TestABatchAsksOnce(t *testing.T) {
	pool, statements := pgtest.Counted(t, pgtest.Open(t, postgres.Schema, postgres.Migrations()...))
	l := ledgertest.On(t, pool)
	l.Start(t, "acme", ledger.Scale)
	book := func(records int) int64 {
		charges := make([]ledger.Charge, records)
		for i := range charges {
			charges[i] = l.NewCharge("acme", 1)
		}
		return statements.Of(func() { l.Book(t, charges...) })
	}
	book(1) // creates the day
	if one, thousand := book(1), book(1000); one == 0 || thousand != one {
		t.Errorf("%d statements for one record, %d for a thousand", one, thousand)
	}
}
