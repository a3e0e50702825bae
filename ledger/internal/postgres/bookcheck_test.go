package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// chargeRange books a charge that counts as booked at an instant, and returns its range.
func (d *desk) chargeRange(t *testing.T, organization string, bytes int64, booked time.Time) postgres.Range {
	t.Helper()
	charge := d.charge(organization, bytes)
	r := postgres.NewRange(charge, booked)
	r.Add(charge, true)
	d.as(t, func(ctx context.Context, tx pgx.Tx) error { return d.Charge(ctx, tx, booked, []ledger.Charge{charge}) })
	return *r
}

// checked is what a check finds in the books of a range.
func (d *desk) checked(t *testing.T, check *postgres.BookCheck, r postgres.Range) (found []string) {
	t.Helper()
	d.as(t, func(ctx context.Context, tx pgx.Tx) error {
		violations, err := check.Of(ctx, tx, r, *d.now.Load(), 20)
		for _, v := range violations {
			found = append(found, v.Invariant)
		}
		return err
	})
	return found
}

func (d *desk) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	d.as(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	})
}

func (d *desk) passes(span time.Duration) time.Time {
	later := d.now.Load().Add(span)
	d.now.Store(&later)
	return later
}

// A book is added up whole at first and once an hour; in between only what was booked since is read. A transaction that commits long
// after it has booked is no alarm.
func TestBookCheckGoesOn(t *testing.T) {
	d, check := newDesk(t), &postgres.BookCheck{}
	d.startPlan(t, "acme", "scale")
	first := d.chargeRange(t, "acme", 10, november)
	d.passes(time.Hour)
	if found := d.checked(t, check, first); len(found) > 0 {
		t.Fatalf("at first: %v", found)
	}
	late := d.chargeRange(t, "acme", 20, november.Add(time.Minute)) // booked before the first look, and committed after it
	if found := d.checked(t, check, late); len(found) > 0 {
		t.Errorf("after a late commit: %v", found)
	}
	d.exec(t, `UPDATE transfers SET amount = amount + 1 WHERE "offset" = $1`, first.First)
	if found := d.checked(t, check, d.chargeRange(t, "acme", 30, d.passes(20*time.Minute))); len(found) > 0 {
		t.Errorf("what was added up before is read again: %v", found)
	}
	if found := d.checked(t, &postgres.BookCheck{}, late); len(found) != 1 || found[0] != postgres.BalanceIsTransfers {
		t.Errorf("a check that begins finds %v", found)
	}
	if found := d.checked(t, check, d.chargeRange(t, "acme", 40, d.passes(time.Hour))); len(found) != 1 || found[0] != postgres.BalanceIsTransfers {
		t.Errorf("a check that goes on finds %v within the hour", found)
	}
}

// What is lost or changed after a book was looked at is found.
func TestBookCheckFinds(t *testing.T) {
	for name, tamper := range map[string]string{
		"a transfer that is lost":     `DELETE FROM transfers WHERE "offset" = $1`,
		"a transfer that was changed": `UPDATE transfers SET amount = amount + 7 WHERE "offset" = $1`,
		"a balance that was changed":  `UPDATE books SET grant_left = grant_left - 1, consumed = consumed + 1 WHERE $1 > 0`,
		"a transfer that nobody booked": `INSERT INTO transfers SELECT organization, effective_at, source, partition, 99, line, period_start, from_account, to_account,
			amount, entries, reason, project, key, event, booked_at FROM transfers WHERE "offset" = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			d, check := newDesk(t), &postgres.BookCheck{}
			d.startPlan(t, "acme", "scale")
			if found := d.checked(t, check, d.chargeRange(t, "acme", 5, d.passes(time.Hour))); len(found) > 0 {
				t.Fatalf("at first: %v", found)
			}
			r := d.chargeRange(t, "acme", 10, d.passes(20*time.Minute))
			also := d.chargeRange(t, "acme", 10, r.Booked)
			d.exec(t, tamper, r.First)
			if found := d.checked(t, check, also); len(found) != 1 || found[0] != postgres.BalanceIsTransfers {
				t.Errorf("found %v", found)
			}
		})
	}
}
