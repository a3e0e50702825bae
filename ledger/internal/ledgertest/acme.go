package ledgertest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/accounts"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// Acme is New with the organization acme on tier indie, 100
// bytes a period, with October closed.
func Acme(t testing.TB) *Ledger {
	t.Helper()
	l := New(t)
	l.Start(t, "acme", ledger.Indie)
	l.AdvanceAll(t)
	return l
}

// GrantOf specifies a grant that is used like a plan.
func GrantOf(amount int64) ledger.Grant {
	return ledger.Grant{Amount: amount, Priority: ledger.PlanPriority}
}

// GrantAcme gives acme a grant.
func (l *Ledger) GrantAcme(t testing.TB, spec ledger.Grant) ledger.Grant {
	t.Helper()
	made, err := l.Grants.Grant(t.Context(), "acme", unitofwork.Request{Actor: "tok_1"}, spec)
	testenv.Must(t, err)
	return made
}

// AdvanceAll does all that is due.
func (l *Ledger) AdvanceAll(t testing.TB) {
	t.Helper()
	for advanced := 1; advanced > 0; {
		var err error
		if advanced, err = l.Plans.Advance(t.Context(), l.Pool, l.DatabaseNow()); err != nil {
			t.Fatal(err)
		}
	}
}

// Round is the round of accounts that is due.
func (l *Ledger) Round(t testing.TB) (round accounts.Round) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) (err error) {
		round, err = l.Accounts.NextRound(ctx, tx)
		return err
	})
	return round
}

// SetPosition sets how far a partition of the log is booked.
func (l *Ledger) SetPosition(t testing.TB, partition int, next int64, topic [16]byte, halted string) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner, topic_id, halted)
			VALUES ($1, $2, $3, $4, 1, '', $5, nullif($6, '')) ON CONFLICT (group_name, topic, partition) DO UPDATE
			SET next = excluded.next, topic_id = excluded.topic_id, halted = excluded.halted`,
			contract.GroupLedger, contract.TopicLogs, partition, next, topic, halted)
		return err
	})
}

// ThreeDays is a ledger in which acme sent 1, 2 and 3 bytes on each of three days.
func ThreeDays(t testing.TB) *Ledger {
	t.Helper()
	l := New(t)
	l.Start(t, "acme", ledger.Scale)
	for range 3 {
		l.Book(t, l.NewCharge("acme", 1), l.NewCharge("acme", 2), l.NewCharge("acme", 3))
		l.SetClock(l.Now().AddDate(0, 0, 1))
	}
	return l
}
