package admission

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/identity"
)

// maxBuckets is how many buckets of projects or keys an organization
// has at most.
const maxBuckets = 4096

// A Gate holds every organization's rate limits and quota.
type Gate struct {
	clock func() time.Time
	waste fairshare.Rate

	mu            sync.RWMutex
	organizations map[string]*organization // bounded by the organizations that there are
	marker        ingest.Positions
	replicas      ingest.Replicas
}

type organization struct {
	known chan struct{} // closed once the account is

	mu       sync.Mutex
	rate     int // requests per minute; 0 while the account is unknown
	bucket   fairshare.Bucket
	projects fairshare.Buckets[string]
	keys     fairshare.Buckets[string]
	wasted   fairshare.Bucket // of bytes
	quota    ingest.Quota
	budgets  ingest.Budgets
}

// NewGate returns a gate without accounts, which admits nobody.
func NewGate(clock func() time.Time) *Gate {
	return &Gate{clock: clock, organizations: map[string]*organization{}}
}

// LimitWaste limits the bytes that each organization wastes: that were
// read, decompressed and validated with nothing accepted, which cost the
// service and not their sender. It is called before the gate is used.
func (g *Gate) LimitWaste(limit fairshare.Rate) { g.waste = limit }

// Apply applies an organization's newest account.
func (g *Gate) Apply(name string, requestsPerMinute int, account ingest.Account) {
	o, marker := g.organization(name), g.Marker()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.quota.Apply(account) {
		return
	}
	if o.rate == 0 {
		close(o.known)
	}
	o.budgets.Apply(account, marker)
	o.rate = max(requestsPerMinute, 1)
}

// Await waits until an organization has an account, or ctx ends: a new one's
// key is in force a little earlier.
func (g *Gate) Await(ctx context.Context, name string) {
	select {
	case <-g.organization(name).known:
	case <-ctx.Done():
	}
}

// Forget drops an organization. Open reservations settle with the dropped quota.
func (g *Gate) Forget(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.organizations, name)
}

// Mark sets the positions up to which the applied accounts count.
func (g *Gate) Mark(counted ingest.Positions) {
	g.mu.Lock()
	g.marker = counted
	all := make([]*organization, 0, len(g.organizations))
	for _, o := range g.organizations {
		all = append(all, o)
	}
	g.mu.Unlock()
	for _, o := range all {
		o.mu.Lock()
		o.quota.Mark(counted)
		o.budgets.Mark(counted)
		o.mu.Unlock()
	}
}

// Divide sets how many replicas of ingest admit requests, this one
// included.
func (g *Gate) Divide(replicas ingest.Replicas) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.replicas == replicas {
		return
	}
	g.replicas = replicas
	for _, o := range g.organizations {
		o.mu.Lock()
		o.divide(replicas)
		o.mu.Unlock()
	}
}

// Replicas returns among how many replicas quotas are divided; 0: they
// are not counted yet.
func (g *Gate) Replicas() ingest.Replicas {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.replicas
}

func (o *organization) divide(replicas ingest.Replicas) {
	o.quota.Replicas = replicas
	o.budgets.Divide(replicas)
}

// Marker returns the last mark.
func (g *Gate) Marker() ingest.Positions {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.marker
}

// An Admission is the gate's decision about a request.
type Admission struct {
	Verdict ingest.Verdict
	Rate    fairshare.Result // zero if Verdict is Unknown
	Wasted  bool             // the rate does not allow it because too many bytes were wasted
	Limits  [3]int           // requests per minute of organization, project and key
	Quota   ingest.QuotaStatus
	Budget  *ingest.BudgetStatus // the exhausted one; nil: none
	Time    time.Time
}

// Enter takes a token for one request of the principal and checks
// whether any quota is left.
func (g *Gate) Enter(who identity.Principal) Admission {
	admitted := Admission{Time: g.clock()}
	o := g.organization(who.Organization)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rate == 0 {
		admitted.Verdict = ingest.Unknown
		return admitted
	}
	limits := o.limits(who, admitted.Time)
	admitted.Limits = [3]int{limits[0].PerMinute, limits[1].PerMinute, limits[2].PerMinute}
	admitted.Rate, admitted.Wasted = g.take(o, admitted.Time, limits[:])
	admitted.Verdict, admitted.Budget = o.check(who, admitted.Time)
	admitted.Quota = o.quota.Status(admitted.Time)
	return admitted
}

// limits are those of the organization, the project and the key.
func (o *organization) limits(who identity.Principal, now time.Time) [3]fairshare.Limit {
	key := o.rate
	if who.RatePerMinute > 0 {
		key = min(key, who.RatePerMinute)
	}
	return [3]fairshare.Limit{
		{Scope: fairshare.ScopeOrganization, PerMinute: o.rate, Bucket: &o.bucket},
		{Scope: fairshare.ScopeProject, PerMinute: o.rate, Bucket: o.projects.Of(who.Project, now)},
		{Scope: fairshare.ScopeKey, PerMinute: key, Bucket: o.keys.Of(who.ID, now)},
	}
}

// take takes a token of each limit, but none from
// an organization that has wasted too many bytes.
func (g *Gate) take(o *organization, now time.Time, limits []fairshare.Limit) (result fairshare.Result, wasted bool) {
	wait := o.wasted.Wait(now, g.waste)
	if wait <= 0 {
		return fairshare.Take(now, limits), false
	}
	result = fairshare.Peek(now, limits)
	result.RetryAfter = wait
	return result, true
}

// check returns the verdict of the quota, or the
// budget that is exhausted though the quota is not.
func (o *organization) check(who identity.Principal, now time.Time) (ingest.Verdict, *ingest.BudgetStatus) {
	verdict := o.quota.Check(now)
	if verdict != ingest.Admitted {
		return verdict, nil
	}
	budget := o.budgets.Check(who.Project, who.ID, now)
	if budget != nil {
		verdict = ingest.Exhausted
	}
	return verdict, budget
}

// Waste charges an organization for wasted bytes.
func (g *Gate) Waste(name string, bytes int64) {
	o := g.organization(name)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wasted.Spend(g.clock(), bytes, g.waste)
}

// A Reservation is what one request holds of the quota, and of
// budgets. It belongs to one goroutine.
type Reservation struct {
	o       *organization
	held    ingest.Reservation
	budgets ingest.BudgetReservation
	g       *Gate
}

// A Reserved is the gate's decision about bytes.
type Reserved struct {
	Verdict ingest.Verdict
	Quota   ingest.QuotaStatus
	Budget  *ingest.BudgetStatus // the refusing one; nil: none
}

// Reserve admits bytes of a sender, accepted now, or returns why not.
func (g *Gate) Reserve(who identity.Principal, now time.Time, bytes int64) (Reservation, Reserved) {
	return g.reserve(who, now, bytes, (*ingest.Quota).Reserve)
}

// Try is Reserve for a request that may repeat a charged one:
// its refusal exhausts nothing.
func (g *Gate) Try(who identity.Principal, now time.Time, bytes int64) (Reservation, Reserved) {
	return g.reserve(who, now, bytes, (*ingest.Quota).Try)
}

// reserve asks the quota first: what it does not cover exhausts no budget.
func (g *Gate) reserve(who identity.Principal, now time.Time, bytes int64, ask ingest.Reserve) (reservation Reservation, reserved Reserved) {
	o := g.organization(who.Organization)
	o.mu.Lock()
	defer o.mu.Unlock()
	reservation = Reservation{o: o, g: g}
	if reservation.held, reserved.Verdict = ask(&o.quota, now, bytes); reserved.Verdict == ingest.Admitted {
		reservation.budgets, reserved.Verdict, reserved.Budget = o.budgets.Reserve(who.Project, who.ID, now, bytes, ask)
		if reserved.Verdict != ingest.Admitted {
			o.quota.Release(reservation.held)
		}
	}
	reserved.Quota = o.quota.Status(now)
	return reservation, reserved
}

// RetentionDays is for how long the request's entries are kept.
func (r Reservation) RetentionDays() int { return r.held.RetentionDays }

// Settle settles the reservation by the outcome and returns the
// organization's quota then.
func (r Reservation) Settle(outcome ingest.Outcome) ingest.QuotaStatus {
	r.o.mu.Lock()
	defer r.o.mu.Unlock()
	switch outcome.Status {
	case ingest.Published:
		r.o.quota.Published(r.held, outcome.Partition, outcome.Offset)
		r.budgets.Published(outcome.Partition, outcome.Offset)
	case ingest.Absent:
		r.o.quota.Release(r.held)
		r.budgets.Release()
	case ingest.Uncertain:
		now := r.g.clock()
		r.o.quota.Lost(r.held, now)
		r.budgets.Lost(now)
	}
	return r.o.quota.Status(r.held.At)
}

// Found records a request in the log, perhaps of another process.
func (g *Gate) Found(c ingest.Charge) {
	o := g.organization(c.Organization)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.quota.Found(c.At, c.Bytes, c.Partition, c.Offset)
	o.budgets.Found(c)
}

// Incomplete reports whether a request lost before an instant is unresolved.
func (g *Gate) Incomplete(before time.Time) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, o := range g.organizations {
		o.mu.Lock()
		doubts := o.quota.Incomplete(before) || o.budgets.Incomplete(before)
		o.mu.Unlock()
		if doubts {
			return true
		}
	}
	return false
}

// Resolve records that requests lost before an instant are below ends
// or not in the log.
func (g *Gate) Resolve(before time.Time, ends ingest.Positions) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, o := range g.organizations {
		o.mu.Lock()
		o.quota.Resolve(before, ends)
		o.budgets.Resolve(before, ends)
		o.mu.Unlock()
	}
}

// Organizations is how many organizations the gate holds.
func (g *Gate) Organizations() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.organizations)
}

// Buckets is how many buckets of projects and keys the gate holds.
func (g *Gate) Buckets() (n int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, o := range g.organizations {
		o.mu.Lock()
		n += o.projects.Len() + o.keys.Len()
		o.mu.Unlock()
	}
	return n
}

func (g *Gate) organization(name string) *organization {
	g.mu.RLock()
	o := g.organizations[name]
	g.mu.RUnlock()
	if o != nil {
		return o
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if o = g.organizations[name]; o == nil {
		o = &organization{
			known: make(chan struct{}), projects: fairshare.NewBuckets[string](maxBuckets), keys: fairshare.NewBuckets[string](maxBuckets),
		}
		o.quota.Mark(g.marker)
		o.divide(g.replicas)
		g.organizations[name] = o
	}
	return o
}

// maxClients is how many client networks are kept apart.
const maxClients = 1 << 16

// Clients limits requests that carry no valid key, per client network.
type Clients struct {
	perMinute int
	networks  *fairshare.Table[netip.Prefix]
	waste     fairshare.Rate
	wasted    *fairshare.Table[netip.Prefix] // of bytes
}

// NewClients allows each network perMinute such requests, at least 1.
func NewClients(perMinute int) *Clients {
	return &Clients{
		perMinute: max(perMinute, 1), networks: fairshare.NewTable[netip.Prefix](maxClients), wasted: fairshare.NewTable[netip.Prefix](maxClients),
	}
}

// LimitWaste limits the wasted bytes of each network. It is called before use.
func (c *Clients) LimitWaste(limit fairshare.Rate) { c.waste = limit }

// Waste charges a network for wasted bytes.
func (c *Clients) Waste(network netip.Prefix, now time.Time, bytes int64) {
	c.wasted.Spend(now, network, bytes, c.waste)
}

// Wait returns how long a network's waste delays its next body.
func (c *Clients) Wait(network netip.Prefix, now time.Time) time.Duration {
	return c.wasted.Wait(now, network, c.waste)
}

// Take takes a token of network.
func (c *Clients) Take(network netip.Prefix, now time.Time) fairshare.Result {
	return c.networks.Take(now, c.ask(network))
}

// Give returns a token of network: its request carried a valid key after all.
func (c *Clients) Give(network netip.Prefix, now time.Time) { c.networks.Refund(now, c.ask(network)) }

// Len is how many networks are kept.
func (c *Clients) Len() int { return c.networks.Len() }

func (c *Clients) ask(network netip.Prefix) fairshare.KeyLimit[netip.Prefix] {
	return fairshare.KeyLimit[netip.Prefix]{Scope: fairshare.ScopeClient, Key: network, PerMinute: c.perMinute}
}
