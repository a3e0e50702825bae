package balances_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/testenv"
)

func statement(t *testing.T, l *ledgertest.Ledger, number int64) ledger.Statement {
	t.Helper()
	found, err := l.Statements.Statement(t.Context(), "acme", number)
	testenv.Must(t, err)
	if err := found.Check(); err != nil {
		t.Error(err)
	}
	return found
}

// A closed period gets its statement once. Late charges stand in the
// next and change none.
func TestStatements(t *testing.T) {
	l := ledgertest.Acme(t)
	given := l.GrantAcme(t, ledgertest.GrantOf(50))
	charge := l.NewCharge("acme", 120)
	charge.Environment = "prod"
	l.Book(t, charge)
	late := l.NewCharge("acme", 7)                        // before the grant, which doesn't cover it
	late.Cause.At = ledgertest.November.AddDate(0, -1, 0) // October is closed
	l.Book(t, late)
	if _, err := l.Grants.Adjust(t.Context(), "acme", unitofwork.Request{}, -3, "too little", time.Time{}); err != nil {
		t.Fatal(err)
	}
	l.SetClock(time.Date(2026, 12, 1, 0, 1, 0, 0, time.UTC))
	december := l.NewCharge("acme", 110) // before November is closed: it uses the grant
	l.Book(t, december)
	l.AdvanceAll(t)

	first := statement(t, l, 3) // of September and October there are two
	if want := (ledger.Totals{Allowance: 100, Granted: 50, Consumed: 123, Overshoot: 7, Closing: 27}); first.Totals != want {
		t.Errorf("totals %+v, want %+v", first.Totals, want)
	}
	if first.Period.Start != time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC) || first.Tier != ledger.Indie || first.Quota != 100 || !first.Made.Equal(l.Now()) {
		t.Errorf("statement %+v", first)
	}
	if want := []ledger.GrantMovement{{Grant: given.ID, Issued: 50, Used: 23, Closing: 27}}; !slices.Equal(first.Grants, want) {
		t.Errorf("grants %+v, want %+v", first.Grants, want)
	}
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	if want := []ledger.DayCharge{{Day: day, Project: "project", Environment: "prod", Requests: 1, Entries: 1, Bytes: 120}}; !slices.Equal(first.Charges, want) {
		t.Errorf("charges %+v, want %+v", first.Charges, want)
	}
	if len(first.Late) != 1 || first.Late[0].Bytes != 7 || first.Late[0].Of.Month() != time.October || len(first.Adjustments) != 1 || first.Adjustments[0].Bytes != -3 {
		t.Errorf("late %+v, adjustments %+v", first.Late, first.Adjustments)
	}

	again := l.NewCharge("acme", 9)
	again.Cause.At = ledgertest.November
	l.Book(t, again)
	l.SetClock(time.Date(2027, 1, 1, 0, 1, 0, 0, time.UTC))
	l.AdvanceAll(t)
	if second := statement(t, l, 4); second.Totals.Opening != 27 || len(second.Late) != 1 || second.Late[0].Bytes != 9 {
		t.Errorf("the next statement %+v", second)
	}
	if now := statement(t, l, 3); now.Totals != first.Totals || !slices.Equal(now.Charges, first.Charges) || len(now.Late) != 1 {
		t.Errorf("the statement has changed: %+v", now)
	}
	ready := 0
	for _, kind := range l.Events() {
		if kind == ledger.StatementReady {
			ready++
		}
	}
	if ready != 4 {
		t.Errorf("%d statements are ready, want 4", ready)
	}
	l.CheckSound(t)
}

// Statements are listed latest first with totals, without those of others.
func TestStatementsAreListed(t *testing.T) {
	l := ledgertest.Acme(t)
	l.Start(t, "evil", ledger.Indie)
	l.SetClock(time.Date(2027, 2, 1, 0, 1, 0, 0, time.UTC))
	l.AdvanceAll(t)
	var numbers []int64
	for before := int64(0); ; {
		page, err := l.Statements.List(t.Context(), "acme", before, 2)
		testenv.Must(t, err)
		for _, s := range page {
			numbers, before = append(numbers, s.Number), s.Number
			if s.Organization != "acme" || s.Totals.Allowance != 100 || s.Totals.Expired != 100 || s.Charges != nil {
				t.Errorf("statement %+v", s)
			}
		}
		if len(page) < 2 {
			break
		}
	}
	if !slices.Equal(numbers, []int64{5, 4, 3, 2, 1}) {
		t.Errorf("statements %v", numbers)
	}
	if _, err := l.Statements.Statement(t.Context(), "acme", 6); !errors.Is(err, ledger.ErrNoStatement) {
		t.Errorf("a statement that there is not: %v", err)
	}
}

// A period whose first lines are gone has no statement; the next has one.
func TestPeriodsOfBeforeHaveNoStatement(t *testing.T) {
	l := ledgertest.Acme(t)
	l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM period_lines`)
		return err
	})
	l.SetClock(time.Date(2027, 1, 1, 0, 1, 0, 0, time.UTC))
	l.AdvanceAll(t)
	if next := statement(t, l, 3); next.Period.Start.Month() != time.December {
		t.Errorf("statement %+v", next)
	}
}

// A statement that differs from its book is found.
func TestSpoiledStatementsAreFound(t *testing.T) {
	l := ledgertest.Acme(t)
	l.SetClock(time.Date(2026, 12, 1, 0, 1, 0, 0, time.UTC))
	l.AdvanceAll(t)
	l.CheckSound(t)
	l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE statements SET document = jsonb_set(jsonb_set(document, '{totals,expired}', '99'), '{totals,consumed}', '1')
			WHERE number = 3`)
		return err
	})
	var found []ledger.Violation
	l.As(t, func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err = postgres.Verify(ctx, tx, l.Balances.Kept, l.Now())
		return err
	})
	times := map[string]int{}
	for _, v := range found {
		times[v.Invariant]++
	}
	if len(found) != 3 || times[ledger.StatementsFollow] != 1 || times[ledger.StatementIsBook] != 2 {
		t.Errorf("violations %+v", found)
	}
}

// A grant used up by a late charge of an earlier period is still in the
// statement of the period.
func TestAGrantThatEndedBeforeIsInTheStatement(t *testing.T) {
	l := ledgertest.Acme(t)
	given := l.GrantAcme(t, ledgertest.GrantOf(50))
	l.Book(t, l.NewCharge("acme", 100)) // all of November's allowance
	december := time.Date(2026, 12, 1, 0, 0, 10, 0, time.UTC)
	l.SetClock(december)
	l.Book(t, l.NewCharge("acme", 130)) // 30 of the grant
	late := l.NewCharge("acme", 20)
	late.Cause.At = december.Add(-20 * time.Second) // of another partition, and in time
	l.Book(t, late)
	l.SetClock(time.Date(2027, 1, 1, 0, 1, 0, 0, time.UTC))
	l.AdvanceAll(t)
	if found, want := statement(t, l, 4).Grants, []ledger.GrantMovement{{Grant: given.ID, Opening: 30, Used: 30}}; !slices.Equal(found, want) {
		t.Errorf("grants %+v, want %+v", found, want)
	}
	l.CheckSound(t)
}
