package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// Billing's decisions about a besieged organization, in bytes.
const (
	largestRaise      = 300 // of its plan
	largestGrant      = 100
	largestChargeMore = 15 // less than a stage adds minus its post
	ampleBudget       = 1 << 40
	askedAgain        = 200 * time.Millisecond
)

const planChanged = "ledger.v1.plan_changed" // its stored name

// bills are billing's decisions in turn.
var bills = []func(s *siege, b *besieged){
	(*siege).raise, (*siege).grant, (*siege).giveBack, (*siege).suspend, (*siege).lower, (*siege).budget, (*siege).chargeMore,
}

// billed is what billing has decided about an organization, and
// the expected results.
type billed struct {
	bills     int            // so far
	requests  int            // of these
	decisions map[string]int // by their stored names
	facts     map[string]int // by the names of notifications
	plan      map[string]any
	quota     int64 // of the plan
	raised    int64 // by all plans together, for whole periods
	lowered   bool  // a plan is scheduled
	given     int64 // by grants and adjustments
	charged   int64 // by adjustments
	budget    int64
	left      int64 // by the books
}

func newBilled(quota int64) billed {
	return billed{
		decisions: map[string]int{}, quota: quota, plan: map[string]any{"tier": "indie"},
		facts: map[string]int{"quota.threshold_reached": 3, "quota.exhausted": 1},
	}
}

// raise subscribes to more, of the other tier.
func (s *siege) raise(b *besieged) {
	more := 1 + b.random.Int64N(largestRaise)
	tier := "bootstrapper"
	if b.plan["tier"] == tier {
		tier = "indie"
	}
	b.quota, b.raised, b.lowered = b.quota+more, b.raised+more, false
	b.plan = map[string]any{"tier": tier, "quota": b.quota, "requests_per_minute": 1_000_000}
	b.decisions[planChanged]++
	b.facts["subscription.tier_changed"]++
	s.decide(b, http.MethodPut, "/subscription", b.plan)
}

// lower subscribes to less, from the end of the period on.
func (s *siege) lower(b *besieged) {
	if b.lowered {
		return
	}
	b.lowered = true
	b.decisions[planChanged]++
	s.decide(b, http.MethodPut, "/subscription", map[string]any{"tier": b.plan["tier"], "quota": b.quota - 1})
}

// suspend waits until every replica of ingest refuses the organization,
// and then admits it again.
func (s *siege) suspend(b *besieged) {
	if b.lowered { // sending the current plan cancels a scheduled one
		b.lowered = false
		b.decisions["ledger.v1.plan_change_cancelled"]++
	}
	for _, suspended := range []bool{true, false} {
		plan := maps.Clone(b.plan)
		plan["suspended"] = suspended
		b.decisions["ledger.v1.suspension_changed"]++
		s.decide(b, http.MethodPut, "/subscription", plan)
		s.awaitAdmitted(b, !suspended)
	}
}

func (s *siege) grant(b *besieged) {
	amount := 1 + b.random.Int64N(largestGrant)
	b.given += amount
	b.decisions["ledger.v1.granted"]++
	s.decide(b, http.MethodPost, "/grants", map[string]any{"amount": amount, "reason": "siege"})
}

func (s *siege) giveBack(b *besieged) {
	amount := 1 + b.random.Int64N(largestGrant)
	b.given += amount
	s.adjust(b, amount)
}

func (s *siege) chargeMore(b *besieged) {
	amount := 1 + b.random.Int64N(largestChargeMore)
	b.charged += amount
	s.adjust(b, -amount)
}

func (s *siege) adjust(b *besieged, amount int64) {
	b.decisions["ledger.v1.adjusted"]++
	b.facts["quota.adjusted"]++
	s.decide(b, http.MethodPost, "/adjustments", map[string]any{"amount": amount, "reason": "siege"})
}

// budget raises the project's budget, always above its use.
func (s *siege) budget(b *besieged) {
	b.budget = max(b.budget, ampleBudget) + 1
	b.decisions["ledger.v1.budgets_changed"]++
	s.decide(b, http.MethodPut, "/budgets", []map[string]any{{"project": b.project, "bytes": b.budget}})
}

// decide sends a decision to one ledger, and again to the other, which
// gives the same answer. Another request with that key is refused.
func (s *siege) decide(b *besieged, method, path string, body any) {
	b.requests++
	request := s.request(b, method, path, body)
	first, again := s.insist(b.requests, request), s.insist(b.requests+1, request)
	if first.Status >= http.StatusBadRequest || first.Status != again.Status || !bytes.Equal(first.Body, again.Body) {
		s.t.Errorf("%s, %s %s: answered %d %s, and then %d %s", b.id, method, path, first.Status, first.Body, again.Status, again.Body)
	}
	other := s.insist(b.requests, s.request(b, http.MethodPost, "/grants", map[string]any{"amount": largestGrant + 1}))
	if err := wantProblem(other.Problem(), http.StatusBadRequest, "idempotency_key_reused"); err != nil {
		s.t.Errorf("%s, another request after %s %s: %v", b.id, method, path, err)
	}
}

func (s *siege) request(b *besieged, method, path string, body any) client.Request {
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Error(err)
	}
	return client.Request{Method: method, Path: "/organizations/" + b.id + path, Body: text, Header: map[string]string{
		"Authorization": "Bearer " + pushingOperator, "Content-Type": "application/json", "Idempotency-Key": fmt.Sprint("request ", b.requests),
	}}
}

// insist asks the ledgers in turn until one gives a final answer. Not
// found is not final: the ledger may not know it yet.
func (s *siege) insist(turn int, request client.Request) client.Answer {
	ctx, cancel := context.WithTimeout(s.t.Context(), siegeLimit)
	defer cancel()
	for ; ; turn++ {
		answer, err := s.offices[turn%len(s.offices)].Call(ctx, request)
		final := err == nil && answer.Status < http.StatusInternalServerError &&
			answer.Status != http.StatusNotFound && answer.Status != http.StatusTooManyRequests
		if final || ctx.Err() != nil {
			return answer
		}
		lifecycle.Pause(ctx, askedAgain)
	}
}

// awaitAdmitted waits until every replica of ingest admits an
// organization, or refuses it. An admitted one gets the answer that its
// request has no entries.
func (s *siege) awaitAdmitted(b *besieged, want bool) {
	status, code := http.StatusTooManyRequests, "quota_exceeded"
	if want {
		status, code = http.StatusBadRequest, "empty_batch"
	}
	for _, replica := range s.replicas {
		s.await(b, func(ctx context.Context) error {
			_, err := replica.Post(ctx, b.key, plainly(body()))
			return wantProblem(err, status, code)
		})
	}
}

// await retries check until it succeeds, for an organization.
func (s *siege) await(b *besieged, check func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), siegeLimit)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if lifecycle.Pause(ctx, askedAgain); ctx.Err() != nil {
			s.t.Errorf("%s, not within %s: %v", b.id, siegeLimit, err)
			return
		}
	}
}

// compareBilled compares the ledger's decisions and grants with billing's.
func (s *siege) compareBilled() {
	s.t.Helper()
	decided, err := s.decided()
	testenv.Must(s.t, err)
	books, err := s.books()
	testenv.Must(s.t, err)
	for _, b := range s.all {
		if !maps.Equal(decided[b.id], b.decisions) {
			s.t.Errorf("%s: decided is %v, and billing decided %v", b.id, decided[b.id], b.decisions)
		}
		least, most := s.quota+b.given+b.share(time.Now()), s.quota+b.given+b.share(s.began)+int64(b.decisions[planChanged])
		if issued := books[b.id].issued; issued < least || issued > most {
			s.t.Errorf("%s was issued %d bytes, want %d to %d", b.id, issued, least, most)
		}
	}
}

// share returns the part of all raises for the rest of the month, rounded down.
func (b *besieged) share(at time.Time) int64 {
	period := calendar.PeriodAt(at, 1)
	return int64(float64(b.raised) * float64(period.End.Sub(at)) / float64(period.End.Sub(period.Start)))
}

// decided counts the decisions about each organization by name, except
// its first plan and those caused by time.
func (s *siege) decided() (map[string]map[string]int, error) {
	found := map[string]map[string]int{}
	ctx := s.t.Context()
	return found, pg.InTxAsSystem(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT organization, name, count(*) FROM events WHERE stream = 'decisions'
			AND name NOT IN ('ledger.v1.advanced', 'ledger.v1.plan_started') GROUP BY 1, 2`)
		if err != nil {
			return err
		}
		var organization, name string
		var count int
		_, err = pgx.ForEachRow(rows, []any{&organization, &name, &count}, func() error {
			if found[organization] == nil {
				found[organization] = map[string]int{}
			}
			found[organization][name] = count
			return nil
		})
		return err
	})
}
