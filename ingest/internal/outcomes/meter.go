package outcomes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

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
