package unitofwork_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/shared/testenv"
)

// A request repeated with its key has the same answer and no further
// effect, even concurrently. With another input it is refused. Keys of
// organizations are independent.
func TestDecidedOnce(t *testing.T) {
	l := ledgertest.Acme(t)
	l.Start(t, "other", ledger.Indie)
	request := unitofwork.Request{IdempotencyKey: "key"}
	ids := map[string]bool{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			made, err := l.Grants.Grant(t.Context(), "acme", request, ledgertest.GrantOf(50))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[made.ID] = true
		})
	}
	wait.Wait()
	if len(ids) != 1 || l.BalanceNow(t, "acme").Book.Granted() != 150 {
		t.Errorf("grants %v, balance %+v", ids, l.BalanceNow(t, "acme").Book)
	}
	if _, err := l.Grants.Grant(t.Context(), "acme", request, ledgertest.GrantOf(51)); !errors.Is(err, idempotency.ErrReused) {
		t.Errorf("error %v, want ErrReused", err)
	}
	if _, err := l.Plans.Subscribe(t.Context(), "acme", request, ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Scale}}); !errors.Is(err, idempotency.ErrReused) {
		t.Errorf("error %v, want ErrReused", err)
	}
	if other, err := l.Grants.Grant(t.Context(), "other", request, ledgertest.GrantOf(7)); err != nil || ids[other.ID] {
		t.Errorf("grant %+v, error %v", other, err)
	}
}

// An invalid decision is refused with its field and changes nothing.
func TestRefusals(t *testing.T) {
	l := ledgertest.Acme(t)
	now := l.Now()
	over := int64(51)
	grants := map[string]ledger.Grant{
		"amount":       ledgertest.GrantOf(0),
		"priority":     {Amount: 1, Priority: ledger.MaxPriority + 1},
		"expires_at":   {Amount: 1, Expires: now},
		"starts_at":    {Amount: 1, Starts: now.AddDate(-100, 0, 0)},
		"rollover_cap": {Amount: 50, RolloverCap: &over},
		"reason":       {Amount: 1, Reason: "a\x00b"},
	}
	for field, spec := range grants {
		_, err := l.Grants.Grant(t.Context(), "acme", unitofwork.Request{}, spec)
		checkRefusal(t, field, err)
	}
	plans := map[string]ledger.Subscription{
		"tier":                {Plan: ledger.Plan{Tier: "gold"}},
		"quota":               {Plan: ledger.Plan{Tier: ledger.Indie, Quota: -1}},
		"requests_per_minute": {Plan: ledger.Plan{Tier: ledger.Indie, RequestsPerMinute: -1}},
		"overage_cap":         {Plan: ledger.Plan{Tier: ledger.Indie, OverageCap: 5}},
		"effective":           {Plan: ledger.Plan{Tier: ledger.Indie}, Effective: "later"},
	}
	for field, wanted := range plans {
		_, err := l.Plans.Subscribe(t.Context(), "acme", unitofwork.Request{}, wanted)
		checkRefusal(t, field, err)
	}
	for _, bytes := range []int64{0, ledger.MaxGrant + 1, -ledger.MaxGrant - 1, math.MinInt64} {
		_, err := l.Grants.Adjust(t.Context(), "acme", unitofwork.Request{}, bytes, "", time.Time{})
		checkRefusal(t, "amount", err)
	}
	_, err := l.Grants.Adjust(t.Context(), "acme", unitofwork.Request{}, 5, "", now.AddDate(1, 0, 0))
	checkRefusal(t, "period", err)
	if _, err := l.Grants.Grant(t.Context(), "nobody", unitofwork.Request{}, ledgertest.GrantOf(1)); !errors.Is(err, ledger.ErrNoOrganization) {
		t.Errorf("error %v, want ErrNoOrganization", err)
	}
	if b := l.BalanceNow(t, "acme").Book; b.Granted() != 100 || b.Used() != 0 {
		t.Errorf("book %+v", b)
	}
}

func checkRefusal(t *testing.T, field string, err error) {
	t.Helper()
	var refusal ledger.Invalid
	if !errors.As(err, &refusal) || refusal.Field != field || refusal.Fix == "" {
		t.Errorf("%s: error %v", field, err)
	}
}

// A decision is stored with its actor and the positions of the log that
// it follows.
func TestDecisionsAreKept(t *testing.T) {
	l := ledgertest.Acme(t)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner) VALUES ($1, $2, 3, 77, 1, '')`,
			contract.GroupLedger, contract.TopicLogs)
		return err
	})
	made := l.GrantAcme(t, ledgertest.GrantOf(50))
	history, err := l.Work.Decisions.Read(t.Context(), postgres.Decisions("acme"))
	testenv.Must(t, err)
	last := history[len(history)-1]
	var positions contract.Positions
	testenv.Must(t, json.Unmarshal([]byte(last.Metadata["positions"]), &positions))
	kept, ok := last.Event.(ledger.Granted)
	if !ok || kept.Grant.ID != made.ID || last.Metadata["actor"] != "tok_1" || !maps.Equal(positions, contract.Positions{3: 77}) {
		t.Errorf("kept %+v", last)
	}
}

// A machine's clock affects no decision: no period ends or opens by it.
func TestDecidedByTheDatabasesClock(t *testing.T) {
	l := ledgertest.Acme(t)
	then := l.DatabaseNow()
	l.SetClock(l.Now().AddDate(0, 1, 0))
	l.ClockAhead = l.Now().Sub(then)
	if made := l.GrantAcme(t, ledgertest.GrantOf(1)); !made.Created.Equal(then) {
		t.Errorf("granted at %s, by the database it was %s", made.Created, then)
	}
	before := len(l.Events())
	if l.AdvanceAll(t); len(l.Events()) != before {
		t.Errorf("events %v", l.Events())
	}
}

// A clock that goes back, even into a closed period, loses no decision
// and overwrites no book.
func TestTimeNeverGoesBack(t *testing.T) {
	l := ledgertest.Acme(t)
	l.Book(t, l.NewCharge("acme", 90))
	december := time.Date(2026, 12, 3, 0, 0, 0, 0, time.UTC)
	l.SetClock(december)
	l.AdvanceAll(t)
	for _, back := range []time.Duration{time.Hour, 4 * 24 * time.Hour, 20 * 24 * time.Hour} {
		l.SetClock(december.Add(-back))
		if made := l.GrantAcme(t, ledgertest.GrantOf(1)); !made.Created.Equal(december) {
			t.Errorf("granted at %s by a clock that went back by %s", made.Created, back)
		}
	}
	l.SetClock(december)
	if b, err := l.Balances.Balance(t.Context(), "acme", time.Time{}); err != nil || b.Book.Granted() != 103 {
		t.Errorf("balance %+v, error %v", b.Book, err)
	}
	l.CheckSound(t)
}

// Requests that wait for one organization's books leave places to other
// organizations and connections to bookings.
func TestDecidersTakeTurns(t *testing.T) {
	l := ledgertest.Acme(t)
	contended := []string{"acme", "second", "third"}
	for _, id := range append(contended[1:], "quiet", "other") {
		l.Start(t, id, ledger.Indie)
	}
	var wait sync.WaitGroup
	grantIn := func(organization string) {
		wait.Go(func() {
			if _, err := l.Grants.Grant(t.Context(), organization, unitofwork.Request{}, ledgertest.GrantOf(1)); err != nil {
				t.Error(err)
			}
		})
	}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		for _, id := range contended {
			if _, _, err := postgres.LockOrganization(ctx, tx, id); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		for range 10 {
			grantIn(contended[0])
		}
		testenv.Eventually(t, func() error { return blocked(ctx, l.Pool, 1) })
		if _, err := l.Grants.Grant(ctx, "quiet", unitofwork.Request{}, ledgertest.GrantOf(1)); err != nil {
			return fmt.Errorf("beside ten of another organization: %w", err)
		}
		for range 10 {
			grantIn(contended[1])
			grantIn(contended[2])
		}
		testenv.Eventually(t, func() error { return blocked(ctx, l.Pool, ledgertest.Deciders) })
		return l.Try(ctx, func(ctx context.Context, tx pgx.Tx) error {
			_, err := l.Booking.Charge(ctx, tx, l.Now(), []ledger.Charge{l.NewCharge("other", 1)})
			return err
		})
	})
	wait.Wait()
}

// An organization with too many waiting decisions is refused at once.
func TestTooManyDeciders(t *testing.T) {
	l := ledgertest.Acme(t)
	grant := func(ctx context.Context) error {
		_, err := l.Grants.Grant(ctx, "acme", unitofwork.Request{}, ledgertest.GrantOf(1))
		return err
	}
	var wait sync.WaitGroup
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		if _, _, err := postgres.LockOrganization(ctx, tx, "acme"); err != nil {
			return err
		}
		refused := make(chan error, 18)
		for range 18 { // one decides, 16 wait
			wait.Go(func() {
				if err := grant(t.Context()); err != nil {
					refused <- err
				}
			})
		}
		var problem *httpapi.Problem
		if err := <-refused; !errors.As(err, &problem) || problem.Code != "overloaded" || problem.Header.Get("Retry-After") == "" {
			t.Errorf("error %v", err)
		}
		return nil
	})
	wait.Wait()
	if granted := l.BalanceNow(t, "acme").Book.Granted(); granted != 117 {
		t.Errorf("granted %d bytes, want those of 17 decisions and 100", granted)
	}
}

// blocked returns nil as soon as so many wait for a lock.
func blocked(ctx context.Context, pool *pgxpool.Pool, want int) error {
	var waiting int
	err := pool.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
	if err == nil && waiting < want {
		err = fmt.Errorf("%d wait", waiting)
	}
	return err
}

// The decisions about an organization are limited in each period.
func TestDecisionsAreBounded(t *testing.T) {
	l := ledgertest.Acme(t)
	adjust := func() error {
		_, err := l.Grants.Adjust(t.Context(), "acme", unitofwork.Request{}, -1, "", time.Time{})
		return err
	}
	decideOften(t, l, ledger.MaxDecisions) // the first began the plan two periods before
	testenv.Must(t, adjust())
	var full ledger.LimitReached
	if err := adjust(); !errors.As(err, &full) || full.Limit != ledger.MaxDecisions {
		t.Errorf("error %v, want LimitReached", err)
	}
	l.SetClock(ledgertest.November.AddDate(0, 1, 0))
	l.AdvanceAll(t)
	if err := adjust(); err != nil {
		t.Errorf("in the next period: %v", err)
	}
}

// decideOften makes so many decisions about acme now.
func decideOften(t *testing.T, l *ledgertest.Ledger, decisions int) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO events (organization, stream, version, name, data, metadata)
			SELECT 'acme', 'decisions', n, 'ledger.v1.adjusted', '{}', json_build_object('at', $2::timestamptz)
			FROM organizations, generate_series(decisions + 1, $1) n WHERE organization = 'acme'`, decisions, l.Now())
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE organizations SET decisions = $1 WHERE organization = 'acme'`, decisions)
		}
		return err
	})
}
