package outcomes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/identity"
)

// Bounds of separate counters until publication. Beyond them requests are
// counted without project, key and environment.
const (
	maxCounters = 1 << 16 // of all organizations
	maxOfOne    = 1 << 10 // of one: its record stays far below the broker's limit
	maxRefusals = 64      // keys of an organization of which refusals are gathered
)

// gatherFor is how long refusals of a key are gathered into one after
// the first is published.
const gatherFor = 10 * time.Minute

// publishBatch is how many facts are published together.
const publishBatch = 500

// finishTimeout is how long Finish may take to publish the last counts.
const finishTimeout = 2 * time.Second

// A Publisher publishes facts. After an error some may be
// published; they are published again unchanged.
type Publisher interface {
	Counted(ctx context.Context, facts []Counts) error
	Refused(ctx context.Context, facts []Refusal) error
}

// Config configures a Meter.
type Config struct {
	Process  string        // names this run
	Interval time.Duration // between two records of an organization
	Clock    func() time.Time
	To       Publisher
}

// A Meter counts outcomes of requests. It is safe for concurrent use. A
// nil *Meter counts nothing.
type Meter struct {
	Config
	counters atomic.Int64 // in use
	merged   atomic.Int64 // requests that were counted without their key
	refused  chan struct{}

	// Of the goroutine that publishes.
	gathered time.Time // when gathered refusals were last published
	sequence int64     // of the last record of counts

	mu            sync.RWMutex
	organizations map[string]*organization // bounded by the organizations with requests or refusals lately
}

// NewMeter returns a meter.
func NewMeter(config Config) *Meter {
	return &Meter{Config: config, refused: make(chan struct{}, 1), organizations: map[string]*organization{}}
}

// A Request has ended, or is the part of its entries with another
// outcome than the rest.
type Request struct {
	Outcome, Reason string // see contract.RequestCount
	Requests        int64  // 0: another Note counts the request
	Entries, Bytes  int64
	KeyInBody       bool
}

// Note counts the outcome of a request with a key.
func (m *Meter) Note(who identity.Principal, request Request) {
	if m == nil {
		return
	}
	at := m.Clock().UTC()
	what := counter{who.Project, who.ID, who.Environment, request.Outcome, request.Reason}
	o := m.lock(who.Organization)
	defer o.mu.Unlock()
	if _, known := o.counts[what]; !known && !m.room(o) {
		what.project, what.key, what.environment = "", "", ""
		m.merged.Add(1)
	}
	o.note(what, request, at)
}

// room adds a counter of an organization, if there is room.
func (m *Meter) room(o *organization) bool {
	if o.keyed >= maxOfOne {
		return false
	}
	if m.counters.Add(1) > maxCounters {
		m.counters.Add(-1)
		return false
	}
	o.keyed++
	return true
}

// Refuse adds a refusal by quota, which Note counts too.
func (m *Meter) Refuse(refused Refusal) {
	if m == nil {
		return
	}
	o := m.lock(refused.Organization)
	first := o.refuse(refused)
	o.mu.Unlock()
	if !first {
		return
	}
	select {
	case m.refused <- struct{}{}:
	default: // a wake-up is pending
	}
}

// lock returns an organization, locked and not dropped.
func (m *Meter) lock(id string) *organization {
	for {
		o := m.organization(id)
		o.mu.Lock()
		if !o.dropped {
			return o
		}
		o.mu.Unlock()
	}
}

func (m *Meter) organization(id string) *organization {
	m.mu.RLock()
	o := m.organizations[id]
	m.mu.RUnlock()
	if o != nil {
		return o
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if o = m.organizations[id]; o == nil {
		o = newOrganization(id)
		m.organizations[id] = o
	}
	return o
}

func (m *Meter) all() []*organization {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make([]*organization, 0, len(m.organizations))
	for _, o := range m.organizations {
		all = append(all, o)
	}
	return all
}

// Run publishes until ctx ends: first refusals at once, the rest every
// Interval. Finish publishes the remainder.
func (m *Meter) Run(ctx context.Context) error {
	ticker := time.NewTicker(m.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.refused:
			_ = m.publishRefusals(ctx, false) // what fails stays, and is published by the next round
		case <-ticker.C:
			_ = m.Publish(ctx, m.Clock().Sub(m.gathered) >= gatherFor)
		}
	}
}

// Finish publishes the rest, once no request is under way.
func (m *Meter) Finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
	defer cancel()
	return m.Publish(ctx, true)
}

// Publish publishes counts and first refusals, and gathered ones when due. One
// goroutine at a time may call it. The next call repeats what fails.
func (m *Meter) Publish(ctx context.Context, gathered bool) error {
	err := errors.Join(m.publishRefusals(ctx, gathered), m.publishCounts(ctx))
	if gathered {
		m.dropIdle()
	}
	return err
}

// dropIdle drops organizations with nothing to publish.
func (m *Meter) dropIdle() {
	for _, o := range m.all() {
		m.dropIfIdle(o)
	}
}

func (m *Meter) dropIfIdle(o *organization) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.idle() {
		o.dropped = true
		delete(m.organizations, o.id)
	}
}

// publishRefusals publishes first refusals, and gathered ones when due.
func (m *Meter) publishRefusals(ctx context.Context, gathered bool) error {
	if gathered {
		m.gathered = m.Clock()
	}
	var facts []Refusal
	var of []*organization
	for _, o := range m.all() {
		if unsent := o.takeRefusals(gathered); len(unsent) > 0 {
			facts, of = append(facts, unsent...), append(of, o)
		}
	}
	for len(facts) > 0 {
		some := min(len(facts), publishBatch)
		if err := m.To.Refused(ctx, facts[:some]); err != nil {
			return err
		}
		facts = facts[some:]
	}
	for _, o := range of {
		o.refusals.unsent = nil
	}
	return nil
}

// publishCounts publishes a record of each organization that has counts.
func (m *Meter) publishCounts(ctx context.Context) error {
	var facts []Counts
	var of []*organization
	for _, o := range m.all() {
		if fact := m.takeCounts(o); fact != nil {
			facts, of = append(facts, *fact), append(of, o)
		}
	}
	for len(facts) > 0 {
		some := min(len(facts), publishBatch)
		if err := m.To.Counted(ctx, facts[:some]); err != nil {
			return err
		}
		for _, o := range of[:some] {
			o.unsent = nil
		}
		facts, of = facts[some:], of[some:]
	}
	return nil
}

// takeCounts returns an organization's record to publish; nil: there is none.
func (m *Meter) takeCounts(o *organization) *Counts {
	if o.unsent != nil {
		return o.unsent // unchanged: it may be published already
	}
	fact, freed := o.take(m.Clock().UTC())
	m.counters.Add(-freed)
	if fact != nil {
		m.sequence++
		fact.Process, fact.Sequence = m.Process, m.sequence // of all organizations, so it also grows for a dropped one
	}
	o.unsent = fact
	return fact
}

// Counts are an organization's requests by outcome in a stretch of time.
type Counts struct {
	Organization string
	Process      string // a run of ingest
	Sequence     int64  // grows by one or more with each record
	From, To     time.Time
	Counts       []Count
}

// A Count sums requests of a key with one outcome. With too many keys,
// project, key and environment are empty.
type Count struct {
	Project         string
	APIKey          string // its id
	Environment     string
	Outcome, Reason string // see contract.RequestCount
	Requests        int64
	Entries         int64 // as far as they were read
	Bytes           int64 // of entries as charged; unread: those received or announced
	KeyInBody       int64 // of Requests: with the key in the body
}

// Measure shows how much the meter holds, and what it counted without keys.
func (m *Meter) Measure(registerer prometheus.Registerer) {
	metrics := promauto.With(registerer)
	metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_ingest_outcome_counters", Help: "Counters of outcomes in memory, by key."},
		func() float64 { return float64(m.counters.Load()) })
	metrics.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_ingest_outcomes_without_key_total", Help: "Outcomes that were counted by organization alone, because too many keys were in use at once.",
	}, func() float64 { return float64(m.merged.Load()) })
}

// A Refusal is a request refused by a quota or budget, the last of Requests.
type Refusal struct {
	Organization string
	Project      string
	APIKey       string // its id
	Environment  string
	RequestID    string
	At           time.Time
	Bytes        int64 // of the request, as in Count
	Remaining    int64 // bytes of the quota or budget
	PeriodStart  time.Time
	Quota        int64 // or budget of the period, as this process has it
	Since        int64 // of the account or budget; changes with a raise
	Exhausts     bool  // the period accepts nothing more with this Quota
	Requests     int64
	Reason       string // as in Count
}

// A counter identifies what is counted separately of an organization's requests.
type counter struct{ project, key, environment, outcome, reason string }

// An organization holds the unpublished counts of its requests.
type organization struct {
	id string

	mu       sync.Mutex
	counts   map[counter]*Count // bounded by maxOfOne, and the reasons there are
	keyed    int                // of counts: with a key
	since    time.Time          // of the first in counts
	refusals refusals
	dropped  bool // no longer published

	unsent *Counts // was perhaps published; nil: nothing. Of the goroutine that publishes
}

func newOrganization(id string) *organization {
	return &organization{id: id, counts: map[counter]*Count{}, refusals: refusals{byKey: map[string]*Refusal{}}}
}

func (o *organization) note(what counter, request Request, at time.Time) {
	if len(o.counts) == 0 {
		o.since = at
	}
	count := o.counts[what]
	if count == nil {
		count = &Count{
			Project: what.project, APIKey: what.key, Environment: what.environment, Outcome: what.outcome, Reason: what.reason,
		}
		o.counts[what] = count
	}
	count.Requests += request.Requests
	count.Entries += request.Entries
	count.Bytes += request.Bytes
	if request.KeyInBody {
		count.KeyInBody += request.Requests
	}
}

// take empties the counts. freed is how many counters with a key that were.
func (o *organization) take(now time.Time) (fact *Counts, freed int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.counts) == 0 {
		return nil, 0
	}
	fact = &Counts{Organization: o.id, From: o.since, To: now}
	for _, count := range o.counts {
		fact.Counts = append(fact.Counts, *count)
	}
	freed = int64(o.keyed)
	o.counts, o.keyed = map[counter]*Count{}, 0
	return fact, freed
}

// idle reports whether nothing is left to publish.
func (o *organization) idle() bool {
	r := &o.refusals
	return len(o.counts)+len(r.byKey)+len(r.first)+len(r.unsent) == 0 && o.unsent == nil
}

// refusals are those by quota that are not yet published.
type refusals struct {
	byKey  map[string]*Refusal // gathered meanwhile; Requests 0: none; bounded by maxRefusals
	first  []Refusal           // of their keys, and not yet taken
	unsent []Refusal           // was perhaps published; of the goroutine that publishes
}

// refuse adds a refusal and reports whether to publish it at once: the
// first of its key for a while, or the first that exhausts the quota.
func (o *organization) refuse(refused Refusal) (first bool) {
	refused.Requests = 1
	gathered, known := o.refusals.byKey[refused.APIKey]
	if !known && len(o.refusals.byKey) >= maxRefusals {
		refused.Project, refused.APIKey, refused.Environment = "", "", ""
		gathered, known = o.refusals.byKey[""]
	}
	if !known {
		o.refusals.first = append(o.refusals.first, refused)
		refused.Requests = 0
		o.refusals.byKey[refused.APIKey] = &refused
		return true
	}
	exhausted := gathered.Exhausts && sameAllowance(*gathered, refused)
	first = refused.Exhausts && !exhausted
	refused.Requests, refused.Exhausts = gathered.Requests+1, refused.Exhausts || exhausted
	if first {
		o.refusals.first = append(o.refusals.first, refused)
		refused.Requests = 0
	}
	*gathered = refused
	return first
}

// sameAllowance reports whether what one refusal exhausts, the other does: a
// suspended organization's allowance is not what refused it.
func sameAllowance(a, b Refusal) bool {
	return a.Quota == b.Quota && a.Since == b.Since && a.PeriodStart.Equal(b.PeriodStart) && a.Reason == b.Reason
}

// takeRefusals returns the refusals to publish now and those that
// failed before. With the gathered ones, idle keys are dropped: their
// next refusal is a first one.
func (o *organization) takeRefusals(all bool) []Refusal {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &o.refusals
	all = all && len(r.unsent) == 0 // without brokers at most one fact for each key is kept
	r.unsent, r.first = append(r.unsent, r.first...), nil
	if !all {
		return r.unsent
	}
	for key, gathered := range r.byKey {
		if gathered.Requests == 0 {
			delete(r.byKey, key)
			continue
		}
		r.unsent = append(r.unsent, *gathered)
		gathered.Requests = 0
	}
	return r.unsent
}
