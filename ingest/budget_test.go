package ingest_test

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
)

var shop, key = ingest.Spender{Project: "shop"}, ingest.Spender{Key: "k"}

// budgeted is an account of 1,000 bytes with budgets.
func budgeted(version int64, budgets ...ingest.Budget) ingest.Account {
	a := account(1000, 0)
	a.Version, a.Budgets = version, budgets
	return a
}

func newBudgets(a ingest.Account) *ingest.Budgets {
	b := &ingest.Budgets{}
	b.Apply(a, nil)
	return b
}

// A request passes while the budgets of its project and its key have
// enough left. The first that exceeds one exhausts it and takes nothing
// from the other.
func TestBudgetsExhaust(t *testing.T) {
	now := november.Add(time.Hour)
	b := newBudgets(budgeted(1, ingest.Budget{Spender: shop, Limit: 100, Used: 40}, ingest.Budget{Spender: key, Limit: 50}))
	r, verdict, _ := b.Reserve("shop", "k", now, 50, (*ingest.Quota).Reserve)
	if verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	r.Published(0, 5)
	if status := b.Check("shop", "k", now); status == nil || status.Spender != key || status.Remaining != 0 {
		t.Fatalf("the key has used its budget: %+v", status)
	}
	if status := b.Check("shop", "other", now); status != nil {
		t.Fatalf("another key of the project: %+v", status)
	}
	if _, verdict, status := b.Reserve("shop", "other", now, 11, (*ingest.Quota).Reserve); verdict != ingest.Exhausted || status.Spender != shop || status.Remaining != 10 {
		t.Fatalf("the project has 10 left: %v %+v", verdict, status)
	}
	if _, verdict, _ := b.Reserve("shop", "other", now, 1, (*ingest.Quota).Reserve); verdict != ingest.Exhausted {
		t.Fatalf("a small one behind it: %v", verdict)
	}
	if _, verdict, _ := b.Reserve("blog", "other", now, 1000, (*ingest.Quota).Reserve); verdict != ingest.Admitted {
		t.Fatalf("another project: %v", verdict)
	}
	if status := b.Check("shop", "k", december); status != nil {
		t.Fatalf("the next period: %+v", status)
	}
}

// A request that one budget refuses reserves nothing of the other.
func TestRefusedByOneBudget(t *testing.T) {
	now := november.Add(time.Hour)
	b := newBudgets(budgeted(1, ingest.Budget{Spender: shop, Limit: 100}, ingest.Budget{Spender: key, Limit: 50}))
	for range 3 {
		if _, verdict, status := b.Reserve("shop", "k", now, 60, (*ingest.Quota).Try); verdict != ingest.Exhausted || status.Spender != key {
			t.Fatalf("%v %+v", verdict, status)
		}
	}
	if _, verdict, status := b.Reserve("shop", "other", now, 100, (*ingest.Quota).Try); verdict != ingest.Admitted {
		t.Fatalf("%v %+v", verdict, status)
	}
}

// Budgets follow the account: raised, removed, or exhausted by the
// ledger. Requests under way stay reserved.
func TestBudgetsFollowTheAccount(t *testing.T) {
	now := november.Add(time.Hour)
	b := newBudgets(budgeted(1, ingest.Budget{Spender: shop, Limit: 100}, ingest.Budget{Spender: key, Limit: 50, Exhausted: true}))
	if status := b.Check("shop", "k", now); status == nil || status.Spender != key {
		t.Fatalf("latched by the ledger: %+v", status)
	}
	if _, verdict, _ := b.Reserve("shop", "other", now, 80, (*ingest.Quota).Reserve); verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	b.Apply(budgeted(2, ingest.Budget{Spender: shop, Limit: 110}), nil)
	if status := b.Check("shop", "k", now); status != nil {
		t.Fatalf("a budget that is gone: %+v", status)
	}
	if _, verdict, _ := b.Reserve("shop", "k", now, 31, (*ingest.Quota).Reserve); verdict != ingest.Contended {
		t.Fatalf("30 of 110 are left: %v", verdict)
	}
	if _, verdict, _ := b.Reserve("shop", "k", now, 30, (*ingest.Quota).Reserve); verdict != ingest.Admitted {
		t.Fatalf("30 of 110 are left: %v", verdict)
	}
	b.Apply(budgeted(3), nil)
	if held, verdict, _ := b.Reserve("shop", "k", now, 1000, (*ingest.Quota).Reserve); verdict != ingest.Admitted || held != nil {
		t.Fatalf("none is left: %v", verdict)
	}
}

// A request found in the log counts in its sender's budgets until the
// ledger has counted it; one of unknown outcome until it is resolved.
func TestBudgetsCountTheLog(t *testing.T) {
	now := november.Add(time.Hour)
	b := newBudgets(budgeted(1, ingest.Budget{Spender: shop, Limit: 100}))
	b.Found(ingest.Charge{Project: "shop", Key: "k", At: now, Bytes: 60, Partition: 1, Offset: 7})
	b.Found(ingest.Charge{Project: "blog", Key: "k", At: now, Bytes: 60, Partition: 1, Offset: 8})
	if _, verdict, _ := b.Reserve("shop", "k", now, 41, (*ingest.Quota).Try); verdict != ingest.Contended {
		t.Fatal(verdict)
	}
	b.Mark(ingest.Positions{1: 8})
	r, verdict, _ := b.Reserve("shop", "k", now, 100, (*ingest.Quota).Try)
	if verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	r.Lost(now)
	if !b.Incomplete(now.Add(time.Minute)) {
		t.Fatal("nothing is in doubt")
	}
	b.Resolve(now.Add(time.Minute), ingest.Positions{1: 9})
	b.Mark(ingest.Positions{1: 9})
	if _, verdict, _ := b.Reserve("shop", "k", now, 100, (*ingest.Quota).Try); verdict != ingest.Admitted {
		t.Fatalf("resolved: %v", verdict)
	}
}

// A budget that was removed and set again is a new one: refusals by the
// old don't exhaust it, even in one account.
func TestBudgetSetAgain(t *testing.T) {
	now := november.Add(time.Hour)
	b := newBudgets(budgeted(1, ingest.Budget{Spender: shop, Limit: 100, Used: 40, Since: 1}))
	held, _, _ := b.Reserve("shop", "k", now, 50, (*ingest.Quota).Reserve)
	if _, verdict, _ := b.Reserve("shop", "k", now, 70, (*ingest.Quota).Reserve); verdict != ingest.Exhausted {
		t.Fatal(verdict)
	}
	b.Apply(budgeted(2, ingest.Budget{Spender: shop, Limit: 100, Used: 40, Since: 1}), nil)
	if status := b.Check("shop", "k", now); status == nil {
		t.Fatal("the same budget is restored")
	}
	b.Apply(budgeted(3, ingest.Budget{Spender: shop, Limit: 100, Used: 40, Since: 3}), nil)
	if status := b.Check("shop", "k", now); status != nil {
		t.Fatalf("another budget is exhausted: %+v", status)
	}
	held.Published(0, 5)
	if _, verdict, _ := b.Reserve("shop", "k", now, 11, (*ingest.Quota).Try); verdict != ingest.Exhausted {
		t.Errorf("with 10 bytes left: %v", verdict)
	}
}

// A fleet is a log, a ledger that counts it, and replicas that admit
// requests by what they know of it.
type fleet struct {
	random   *rand.Rand
	limit    int64
	replicas []*ingest.Quota
	log      [3][]int64 // bytes, by partition
	order    []int      // of the partitions of all requests
	counted  ingest.Positions
	account  ingest.Account
}

// largest is the largest request of a fleet, in bytes.
const largest = 60

func newFleet(seed uint64, replicas int) *fleet {
	random := rand.New(rand.NewPCG(seed, 9))
	f := &fleet{random: random, limit: 1 + random.Int64N(20_000), counted: ingest.Positions{}}
	f.account = account(f.limit, 0)
	for range replicas {
		quota := newQuota(f.account)
		quota.Replicas = ingest.Replicas(replicas)
		f.replicas = append(f.replicas, quota)
	}
	return f
}

// post sends a request to a replica and returns its verdict.
func (f *fleet) post(to *ingest.Quota, bytes int64) ingest.Verdict {
	reservation, verdict := to.Try(november.Add(time.Hour), bytes)
	if verdict == ingest.Admitted {
		partition := f.random.IntN(len(f.log))
		to.Published(reservation, partition, int64(len(f.log[partition])))
		f.log[partition], f.order = append(f.log[partition], bytes), append(f.order, partition)
	}
	return verdict
}

// any is a random replica.
func (f *fleet) any() *ingest.Quota { return f.replicas[f.random.IntN(len(f.replicas))] }

// burst sends requests to replicas.
func (f *fleet) burst() {
	for range f.random.IntN(60) {
		f.post(f.any(), 1+f.random.Int64N(largest))
	}
}

// countInOrder counts some requests in the order of their acceptance.
func (f *fleet) countInOrder() {
	for range f.random.IntN(60) {
		if len(f.order) == 0 {
			return
		}
		f.counted[f.order[0]]++
		f.order = f.order[1:]
	}
}

// countAnyhow counts some requests of one partition.
func (f *fleet) countAnyhow() {
	p := f.random.IntN(len(f.log))
	f.counted[p] += f.random.Int64N(int64(len(f.log[p])) - f.counted[p] + 1)
}

// snapshot is the account as the ledger has it: overshoot is not used.
func (f *fleet) snapshot() ingest.Account {
	used := int64(0)
	for p, partition := range f.log {
		for _, bytes := range partition[:f.counted[p]] {
			used += bytes
		}
	}
	f.account.Used, f.account.Counted = min(used, f.limit), maps.Clone(f.counted)
	f.account.Version++
	return f.account
}

func (f *fleet) publish(to ...*ingest.Quota) {
	account := f.snapshot()
	for _, replica := range to {
		replica.Apply(account)
	}
}

func (f *fleet) accepted() (bytes int64) {
	for _, partition := range f.log {
		for _, one := range partition {
			bytes += one
		}
	}
	return bytes
}

// Replicas that know the same, of a ledger that counts requests in their
// order, admit too much by at most one request of each but one. What fits
// is admitted in the end.
func TestReplicasOvershootByARequestEach(t *testing.T) {
	for seed := range uint64(300) {
		n := 1 + int(seed%6)
		f := newFleet(seed, n)
		for range 400 {
			f.burst()
			f.countInOrder()
			f.publish(f.replicas...)
		}
		accepted := f.accepted()
		if over := accepted - f.limit; over > int64(n-1)*largest {
			t.Fatalf("seed %d: %d replicas accepted %d bytes of %d", seed, n, accepted, f.limit)
		}
		if accepted <= f.limit-largest {
			t.Fatalf("seed %d: %d replicas accepted only %d bytes of %d", seed, n, accepted, f.limit)
		}
	}
}

// Whatever the ledger counts first and replicas know, each but one adds
// a quarter of an even share at most, or one request.
func TestReplicasOvershootByAQuarter(t *testing.T) {
	most := 0.0
	for seed := range uint64(600) {
		n := 2 + int(seed%5)
		f := newFleet(seed, n)
		for range 400 {
			f.burst()
			f.countAnyhow()
			if f.random.IntN(3) == 0 {
				f.publish(f.any())
			}
		}
		over, bound := f.accepted()-f.limit, int64(n-1)*max(f.limit/int64(4*n), largest)
		if over > bound {
			t.Fatalf("seed %d: %d replicas accepted %d bytes more than %d, at most %d are allowed", seed, n, over, f.limit, bound)
		}
		most = max(most, float64(over)/float64(bound))
	}
	if most < 0.3 {
		t.Errorf("at most %.2f of the bound was reached: the test does not test much", most)
	}
}

// The worst case: one replica's requests are never counted, and it reads
// nothing, while the other goes on until nothing is left.
func TestOvershootOfAReplicaThatIsBehind(t *testing.T) {
	all := account(100_000, 0)
	behind, ahead := newQuota(all), newQuota(all)
	behind.Replicas = 2
	ahead.Replicas = 2
	beyond, _ := exhaust(behind, 0)
	if beyond != 12_500 {
		t.Fatalf("one accepted %d bytes, its share is an eighth", beyond)
	}
	next := int64(0)
	for {
		var bytes int64
		if bytes, next = exhaust(ahead, next); bytes == 0 {
			break
		}
		all.Version, all.Used, all.Counted = all.Version+1, all.Used+bytes, ingest.Positions{0: next}
		ahead.Apply(all)
	}
	if total := all.Used + beyond; total != 112_500 {
		t.Errorf("together they accepted %d bytes of 100,000, want an eighth more", total)
	}
}

// exhaust has a replica accept requests of 10 bytes until it refuses one.
func exhaust(q *ingest.Quota, next int64) (bytes, end int64) {
	for {
		r, verdict := q.Try(november.Add(time.Hour), 10)
		if verdict != ingest.Admitted {
			return bytes, next
		}
		q.Published(r, 0, next)
		bytes, next = bytes+r.Bytes, next+1
	}
}

// A replica that is alone has no share: what fits is admitted at once.
func TestAReplicaAloneHasNoShare(t *testing.T) {
	for _, replicas := range []ingest.Replicas{0, 1} {
		q := newQuota(account(100, 0))
		q.Replicas = replicas
		for i := range 10 {
			r, verdict := q.Reserve(november.Add(time.Hour), 10)
			if verdict != ingest.Admitted {
				t.Fatalf("of %d replicas, request %d: %v", replicas, i, verdict)
			}
			q.Published(r, 0, int64(i))
		}
	}
}

// Beyond its share a replica refuses for now, whether or not it knows
// the size, and exhausts nothing.
func TestBeyondItsShareAReplicaWaits(t *testing.T) {
	now := november.Add(time.Hour)
	q := newQuota(account(800, 0))
	q.Replicas = 2
	r, verdict := q.Reserve(now, 60)
	if verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	q.Published(r, 0, 0)
	if _, verdict := q.Reserve(now, 41); verdict != ingest.Contended {
		t.Errorf("101 of a share of 100: %v", verdict)
	}
	r, verdict = q.Reserve(now, 40)
	if verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	q.Published(r, 0, 1)
	if verdict := q.Check(now); verdict != ingest.Contended {
		t.Errorf("after its share: %v", verdict)
	}
	counted := account(800, 100)
	counted.Version, counted.Counted = 2, ingest.Positions{0: 2}
	q.Apply(counted)
	if _, verdict := q.Reserve(now, 700); verdict != ingest.Admitted {
		t.Errorf("once it is counted, what fits: %v", verdict)
	}
}
