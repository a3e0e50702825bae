package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/service"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

func grantOf(amount int64) ledger.Grant {
	return ledger.Grant{Amount: amount, Priority: ledger.PlanPriority}
}

func grant(t *testing.T, l *ledgertest.Ledger, wish ledger.Grant) ledger.Grant {
	t.Helper()
	made, err := l.Grant(t.Context(), "acme", service.Request{Actor: "tok_1"}, wish)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func subscribe(t *testing.T, l *ledgertest.Ledger, wanted ledger.Subscription) service.Subscription {
	t.Helper()
	made, err := l.Subscribe(t.Context(), "acme", service.Request{Actor: "tok_1"}, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// open makes an organization on tier indie, 100 bytes a period, with October closed.
func open(t *testing.T) *ledgertest.Ledger {
	t.Helper()
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	advanceAll(t, l)
	return l
}

// closings are the events of an organization with which nothing happens but that so many periods close at once.
func closings(periods int) []ledger.EventKind {
	return append(slices.Repeat([]ledger.EventKind{ledger.PeriodClosed}, periods), slices.Repeat([]ledger.EventKind{ledger.StatementReady}, periods)...)
}

func advanceAll(t *testing.T, l *ledgertest.Ledger) {
	t.Helper()
	for advanced := 1; advanced > 0; {
		var err error
		if advanced, err = l.Advance(t.Context(), l.Pool, l.DatabaseNow()); err != nil {
			t.Fatal(err)
		}
	}
}

// Subscribed, used up, upgraded, and on: the books hold, and each fact is there once.
func TestUpgrade(t *testing.T) {
	l := open(t)
	l.Book(t, l.NewCharge("acme", 100))
	made := subscribe(t, l, ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Scale, Quota: 400}})
	if made.Plan.Tier != ledger.Scale || made.State != ledger.Active || made.Next != nil {
		t.Errorf("subscription %+v", made)
	}
	// 10.5 of 30 days are left.
	if b := l.BalanceNow(t, "acme").Book; b.Granted() != 100+105 || b.Remaining() != 105 {
		t.Errorf("book %+v", b)
	}
	if due := roundOf(t, l).Accounts; len(due) != 1 || due[0].Tier != ledger.Scale || due[0].NextQuota != 400 || due[0].State != ledger.Active {
		t.Errorf("published is %+v", due)
	}
	want := append(closings(2), ledger.QuotaRestored, ledger.TierChanged)
	if got := l.Events(); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	l.CheckSound(t)
}

// A smaller plan waits until the period ends; until then it can be taken back by sending what is in force.
func TestDowngrade(t *testing.T) {
	l := open(t)
	small := ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Indie, Quota: 40}}
	december := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		wanted    ledger.Subscription
		scheduled int64 // its quota
	}{
		{small, 40},
		{small, 40},
		{ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Indie}}, 0},
		{ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Indie, Quota: 30}}, 30},
		{small, 40},
	} {
		made := subscribe(t, l, step.wanted)
		if scheduled := made.Next != nil; scheduled != (step.scheduled > 0) || scheduled && (made.Next.Terms.Quota != step.scheduled || !made.Next.Plan.From.Equal(december)) {
			t.Fatalf("after %+v: next %+v", step.wanted.Plan, made.Next)
		}
	}
	var refusal ledger.Invalid
	small.Effective = ledger.Now
	if _, err := l.Subscribe(t.Context(), "acme", service.Request{}, small); !errors.As(err, &refusal) || refusal.Field != "effective" {
		t.Errorf("error %v", err)
	}
	l.SetClock(december.Add(2 * time.Minute))
	advanceAll(t, l)
	if b := l.BalanceNow(t, "acme"); b.Book.Granted() != 40 {
		t.Errorf("in December: %+v", b.Book)
	}
	l.CheckSound(t)
}

// What a grant gives is used, survives a restart of the process, and can be taken back once.
func TestGrants(t *testing.T) {
	l := open(t)
	l.Book(t, l.NewCharge("acme", 90))
	made := grant(t, l, grantOf(50))
	l.Book(t, l.NewCharge("acme", 30), l.NewCharge("acme", 5))
	if b := l.BalanceNow(t, "acme").Book; b.Granted() != 150 || b.Used() != 125 || b.Remaining() != 25 {
		t.Errorf("book %+v", b)
	}
	l.CheckSound(t)
	for range 2 {
		voided, err := l.Void(t.Context(), "acme", service.Request{}, made.ID)
		if err != nil || voided.Status != ledger.GrantVoided || voided.Consumed != 25 || voided.Voided != 25 || voided.Remaining != 0 {
			t.Errorf("voided %+v, error %v", voided, err)
		}
	}
	if _, err := l.Void(t.Context(), "acme", service.Request{}, "grt_none"); !errors.Is(err, ledger.ErrNoGrant) {
		t.Errorf("error %v, want ErrNoGrant", err)
	}
	found, err := l.Grants(t.Context(), "acme", postgres.GrantCursor{}, 10)
	if err != nil || len(found) != 1 || found[0].ID != made.ID {
		t.Errorf("grants %+v, error %v", found, err)
	}
	l.CheckSound(t)
}

// What an organization could use at an instant is the same whenever it is asked for, whatever became of its grants since.
func TestBalanceOfThenWithGrants(t *testing.T) {
	l := open(t)
	before := l.Now()
	l.Pass(time.Minute)
	made := grant(t, l, grantOf(50))
	l.Book(t, l.NewCharge("acme", 120))
	between := l.Now()
	l.Pass(time.Minute)
	if _, err := l.Void(t.Context(), "acme", service.Request{}, made.ID); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		at                 time.Time
		granted, remaining int64
	}{{before, 100, 100}, {between, 150, 30}, {l.Now(), 150, 0}} {
		b, err := l.Balance(t.Context(), "acme", test.at)
		if err != nil || b.Book.Granted() != test.granted || b.Book.Remaining() != test.remaining {
			t.Errorf("at %s: %+v, error %v; want %d granted, %d left", test.at, b.Book, err, test.granted, test.remaining)
		}
	}
}

// A request that is made again with its key has no further effect and the same answer, also at the same time; with another input it is
// refused. The key of one organization is nothing to another.
func TestDecidedOnce(t *testing.T) {
	l := open(t)
	l.Start(t, "other", ledger.Indie)
	request := service.Request{IdempotencyKey: "key"}
	ids := map[string]bool{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			made, err := l.Grant(t.Context(), "acme", request, grantOf(50))
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
	if _, err := l.Grant(t.Context(), "acme", request, grantOf(51)); !errors.Is(err, postgres.ErrReused) {
		t.Errorf("error %v, want ErrReused", err)
	}
	if _, err := l.Subscribe(t.Context(), "acme", request, ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Scale}}); !errors.Is(err, postgres.ErrReused) {
		t.Errorf("error %v, want ErrReused", err)
	}
	if other, err := l.Grant(t.Context(), "other", request, grantOf(7)); err != nil || ids[other.ID] {
		t.Errorf("grant %+v, error %v", other, err)
	}
}

// What can't be decided is refused with the field that is wrong, and changes nothing.
func TestRefusals(t *testing.T) {
	l := open(t)
	now := l.Now()
	over := int64(51)
	grants := map[string]ledger.Grant{
		"amount":       grantOf(0),
		"priority":     {Amount: 1, Priority: ledger.MaxPriority + 1},
		"expires_at":   {Amount: 1, Expires: now},
		"starts_at":    {Amount: 1, Starts: now.AddDate(-100, 0, 0)},
		"rollover_cap": {Amount: 50, RolloverCap: &over},
		"reason":       {Amount: 1, Reason: "a\x00b"},
	}
	for field, wish := range grants {
		_, err := l.Grant(t.Context(), "acme", service.Request{}, wish)
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
		_, err := l.Subscribe(t.Context(), "acme", service.Request{}, wanted)
		checkRefusal(t, field, err)
	}
	for _, bytes := range []int64{0, ledger.MaxGrant + 1, -ledger.MaxGrant - 1, math.MinInt64} {
		_, err := l.Adjust(t.Context(), "acme", service.Request{}, bytes, "", time.Time{})
		checkRefusal(t, "amount", err)
	}
	_, err := l.Adjust(t.Context(), "acme", service.Request{}, 5, "", now.AddDate(1, 0, 0))
	checkRefusal(t, "period", err)
	if _, err := l.Grant(t.Context(), "nobody", service.Request{}, grantOf(1)); !errors.Is(err, ledger.ErrNoOrganization) {
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

// An organization has as many grants as it may, and no more.
func TestGrantsAreBounded(t *testing.T) {
	l := open(t)
	for range ledger.MaxGrants {
		grant(t, l, grantOf(1))
	}
	var full ledger.LimitReached
	if _, err := l.Grant(t.Context(), "acme", service.Request{}, grantOf(1)); !errors.As(err, &full) {
		t.Errorf("error %v, want LimitReached", err)
	}
}

// Periods end, and grants start and expire, for an organization that sends nothing; what comes late is an adjustment.
func TestWhatIsDueIsDone(t *testing.T) {
	l := open(t)
	late := l.NewCharge("acme", 7)
	scheduled := grantOf(50)
	scheduled.Starts, scheduled.Expires = l.Now().AddDate(0, 0, 2), l.Now().AddDate(0, 0, 12)
	made := grant(t, l, scheduled)
	if made.Status != ledger.GrantScheduled || made.Remaining != 0 {
		t.Errorf("grant %+v", made)
	}
	l.SetClock(time.Date(2026, 12, 3, 0, 0, 0, 0, time.UTC))
	advanceAll(t, l)
	l.Book(t, late)
	advanceAll(t, l)
	if b := l.BalanceNow(t, "acme").Book; b.Granted() != 150 || b.Used() != 7 || b.Remaining() != 93 { // the grant expired in December
		t.Errorf("in December: %+v", b)
	}
	found, err := l.Grants(t.Context(), "acme", postgres.GrantCursor{}, 1)
	if err != nil || found[0].Status != ledger.GrantExpired || found[0].Expired != 50 {
		t.Errorf("grants %+v, error %v", found, err)
	}
	want := append(closings(2), ledger.GrantExpiring, ledger.PeriodClosed, ledger.GrantHasExpired, ledger.StatementReady)
	if got := l.Events(); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	l.CheckSound(t)
}

// Several at once do what is due, each for the organizations that no other has, and nothing is done twice.
func TestAdvancersShareTheWork(t *testing.T) {
	l := ledgertest.New(t)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		l.Start(t, id, ledger.Indie)
	}
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			for range 5 {
				if _, err := l.Advance(t.Context(), l.Pool, l.DatabaseNow()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	advanceAll(t, l)
	if got := len(l.Events()); got != 6*4 {
		t.Errorf("%d events, want September and October closed for each of 6, with their statements", got)
	}
	l.CheckSound(t)
}

// An organization with which it fails waits alone, also where there are more of these than a transaction takes.
func TestWhatFailsKeepsNobodyWaiting(t *testing.T) {
	l := ledgertest.New(t)
	const failing = 25
	l.Start(t, "sound", ledger.Indie)
	for i := range failing {
		l.Start(t, fmt.Sprint("failing", i), ledger.Indie)
	}
	count := func(decisions int) {
		l.As(t, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE organizations SET decisions = decisions + $1, due_at = due_at - interval '1 day'
				WHERE organization LIKE 'failing%'`, decisions)
			return err
		})
	}
	count(7) // more than there are: what is decided next has the wrong number
	advanced, err := l.Advance(t.Context(), l.Pool, l.DatabaseNow())
	if err == nil || !strings.Contains(err.Error(), `of 25 organizations, of the first: organization "failing`) || advanced != 1 {
		t.Errorf("%d advanced, error %v", advanced, err)
	}
	closed := closings(2)
	if got := l.Events(); !slices.Equal(got, closed) {
		t.Errorf("events %v, want %v", got, closed)
	}
	count(-7)
	if advanced, err := l.Advance(t.Context(), l.Pool, l.DatabaseNow()); err != nil || advanced != failing {
		t.Errorf("%d advanced, error %v", advanced, err)
	}
	l.CheckSound(t)
}

// A decision is kept with who made it, and the positions of the log behind which it takes effect.
func TestDecisionsAreKept(t *testing.T) {
	l := open(t)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner) VALUES ($1, $2, 3, 77, 1, '')`,
			contract.GroupLedger, contract.TopicLogs)
		return err
	})
	made := grant(t, l, grantOf(50))
	history, err := l.Decisions.Read(t.Context(), postgres.Decisions("acme"))
	if err != nil {
		t.Fatal(err)
	}
	last := history[len(history)-1]
	var positions contract.Positions
	if err := json.Unmarshal([]byte(last.Metadata["positions"]), &positions); err != nil {
		t.Fatal(err)
	}
	kept, ok := last.Event.(ledger.Granted)
	if !ok || kept.Grant.ID != made.ID || last.Metadata["actor"] != "tok_1" || !maps.Equal(positions, contract.Positions{3: 77}) {
		t.Errorf("kept %+v", last)
	}
}

// What a machine's clock says decides nothing: neither does a period end by it, nor is one opened.
func TestDecidedByTheDatabasesClock(t *testing.T) {
	l := open(t)
	then := l.DatabaseNow()
	l.SetClock(l.Now().AddDate(0, 1, 0))
	l.ClockAhead = l.Now().Sub(then)
	if made := grant(t, l, grantOf(1)); !made.Created.Equal(then) {
		t.Errorf("granted at %s, by the database it was %s", made.Created, then)
	}
	before := len(l.Events())
	if advanceAll(t, l); len(l.Events()) != before {
		t.Errorf("events %v", l.Events())
	}
}

// A clock that goes back, behind the last decision and into a closed period, takes no decision with it, and overwrites no book.
func TestTimeNeverGoesBack(t *testing.T) {
	l := open(t)
	l.Book(t, l.NewCharge("acme", 90))
	december := time.Date(2026, 12, 3, 0, 0, 0, 0, time.UTC)
	l.SetClock(december)
	advanceAll(t, l)
	for _, back := range []time.Duration{time.Hour, 4 * 24 * time.Hour, 20 * 24 * time.Hour} {
		l.SetClock(december.Add(-back))
		if made := grant(t, l, grantOf(1)); !made.Created.Equal(december) {
			t.Errorf("granted at %s by a clock that went back by %s", made.Created, back)
		}
	}
	l.SetClock(december)
	if b, err := l.Balance(t.Context(), "acme", time.Time{}); err != nil || b.Book.Granted() != 103 {
		t.Errorf("balance %+v, error %v", b.Book, err)
	}
	l.CheckSound(t)
}

// Those who wait for an organization's books leave connections to those who book.
func TestDecidersLeaveConnections(t *testing.T) {
	l := open(t)
	l.Start(t, "other", ledger.Indie)
	var wait sync.WaitGroup
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		if _, _, err := postgres.LockOrganization(ctx, tx, "acme"); err != nil {
			return err
		}
		for range 2 * l.Pool.Config().MaxConns {
			wait.Go(func() {
				if _, err := l.Grant(t.Context(), "acme", service.Request{}, grantOf(1)); err != nil {
					t.Error(err)
				}
			})
		}
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		testenv.Eventually(t, 30*time.Second, func() error { return blocked(ctx, l.Pool, ledgertest.Deciders) })
		return l.Try(ctx, func(ctx context.Context, tx pgx.Tx) error {
			_, err := l.Charge(ctx, tx, l.Now(), []ledger.Charge{l.NewCharge("other", 1)})
			return err
		})
	})
	wait.Wait()
}

// blocked is nil as soon as so many wait for a lock.
func blocked(ctx context.Context, pool *pgxpool.Pool, want int) error {
	var waiting int
	err := pool.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
	if err == nil && waiting < want {
		err = fmt.Errorf("%d wait", waiting)
	}
	return err
}
