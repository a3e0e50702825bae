package keyfact

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// An Outcome is the outcome of a request with a key.
type Outcome int

// The outcomes.
const (
	Accepted Outcome = iota // entries were accepted
	Rejected                // it failed for a reason other than the key
	Refused                 // it failed because the key has ended
	Read                    // it was admitted to read
	outcomes
)

const (
	publishEvery = 10 * time.Second // for each key, at most once in that time
	lookEvery    = time.Second
	forgetIdle   = 10 * time.Minute
	maxKeys      = 1 << 16 // keys counted at once

	maxClient       = 1 << 10 // bytes of User-Agent kept for each key
	publishTogether = 256     // each alone would wait for the brokers' answer to the one before
)

// A Meter counts the uses of keys. Safe for concurrent use; counting
// takes no lock once a key is known. A nil *Meter counts nothing.
type Meter struct {
	clock func() time.Time

	byKey  sync.Map // id of the key: *sum; bounded by maxKeys
	keys   atomic.Int64
	missed atomic.Int64 // uses beyond maxKeys
	fresh  chan struct{}
}

// A sum is a key's unpublished uses.
type sum struct {
	who           identity.Principal
	counts        [outcomes]atomic.Int64
	firstAccepted atomic.Int64 // nanoseconds since 1970; 0: none
	last          atomic.Int64
	sender        atomic.Pointer[sender]
	published     time.Time // last; only for the publishing goroutine
}

// A sender is a user of a key.
type sender struct {
	address netip.Addr
	client  string
}

// NewMeter returns an empty meter.
func NewMeter(clock func() time.Time) *Meter {
	return &Meter{clock: clock, fresh: make(chan struct{}, 1)}
}

// Note counts a request with a key. client may be long, with any content.
func (m *Meter) Note(who identity.Principal, outcome Outcome, address netip.Addr, client string) {
	if m == nil {
		return
	}
	now := m.clock().UnixNano()
	s, fresh := m.sum(who, now)
	if s == nil {
		m.missed.Add(1)
		return
	}
	client = client[:min(len(client), maxClient)]
	if before := s.sender.Load(); before == nil || before.address != address || before.client != client {
		s.sender.Store(&sender{address, strings.Clone(client)})
	}
	s.last.Store(now)
	if outcome == Accepted && s.firstAccepted.Load() == 0 {
		s.firstAccepted.CompareAndSwap(0, now)
	}
	s.counts[outcome].Add(1)
	if fresh {
		m.lookNow()
	}
}

// lookNow makes the first use of a key be published at once.
func (m *Meter) lookNow() {
	select {
	case m.fresh <- struct{}{}:
	default: // a wake-up is pending
	}
}

// Seen returns a function that counts the requests of a guard: they
// read, or were refused.
func (m *Meter) Seen(proxies []netip.Prefix) func(r *http.Request, who identity.Principal, use identity.Use) {
	outcomes := map[identity.Use]Outcome{identity.Admitted: Read, identity.Refused: Rejected, identity.Ended: Refused}
	return func(r *http.Request, who identity.Principal, use identity.Use) {
		m.Note(who, outcomes[use], httpapi.ClientAddress(r, proxies), r.UserAgent())
	}
}

// sum returns a key's sum, and whether it is new; nil without room. It
// counts as used at once: else it could be dropped before its first count.
func (m *Meter) sum(who identity.Principal, now int64) (s *sum, fresh bool) {
	if found, ok := m.byKey.Load(who.ID); ok {
		return found.(*sum), false //nolint:forcetypeassert // there is nothing else in it
	}
	if m.keys.Load() >= maxKeys {
		return nil, false
	}
	made := &sum{who: who}
	made.last.Store(now)
	found, known := m.byKey.LoadOrStore(who.ID, made)
	if !known {
		m.keys.Add(1)
	}
	return found.(*sum), !known //nolint:forcetypeassert // there is nothing else in it
}

// Keys returns how many keys are counted.
func (m *Meter) Keys() int64 { return m.keys.Load() }

// Missed returns how many uses were not counted, because too many keys
// were in use at once.
func (m *Meter) Missed() int64 { return m.missed.Load() }

// Publish publishes uses, from several goroutines. An error means that
// nothing was published, and the counts are published later. A possible
// publication is no error: losing a count is better than inventing one.
type Publish func(ctx context.Context, used contract.KeyUsed) error

// Run publishes uses until ctx ends; Flush publishes the later ones.
func (m *Meter) Run(ctx context.Context, publish Publish) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	publishing, cancel := outlive(ctx, flushTimeout)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.fresh:
		case <-look.C:
		}
		m.publish(publishing, publish, publishEvery)
	}
}

// outlive returns a context that ends some time after ctx: else a
// publication cut off at the end of the process would be neither
// published nor counted.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return lasting, func() {
		stop()
		cancel()
	}
}

// flushTimeout limits the last publication of a process.
const flushTimeout = 2 * time.Second

// Finish publishes the last counts, after the last request.
func (m *Meter) Finish(publish Publish) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	m.Flush(ctx, publish)
}

// Flush publishes all unpublished uses.
func (m *Meter) Flush(ctx context.Context, publish Publish) { m.publish(ctx, publish, 0) }

// publish publishes the uses of due keys, and waits for all. After one
// failure the rest waits for the next round.
func (m *Meter) publish(ctx context.Context, publish Publish, every time.Duration) {
	now := m.clock()
	var failed atomic.Bool
	var publishing sync.WaitGroup
	room := make(chan struct{}, publishTogether)
	m.byKey.Range(func(key, value any) bool {
		s, _ := value.(*sum)
		if now.Sub(s.published) < every {
			return true
		}
		used, any := s.take()
		if !any {
			m.forget(key, s, now)
			return true
		}
		room <- struct{}{}
		publishing.Go(func() {
			if !s.publish(ctx, publish, used, now) {
				failed.Store(true)
			}
			<-room
		})
		return !failed.Load()
	})
	publishing.Wait()
}

// publish publishes uses taken from the sum, and reports whether they
// are done with; otherwise they count again.
func (s *sum) publish(ctx context.Context, publish Publish, used contract.KeyUsed, now time.Time) bool {
	if publish(ctx, used) != nil {
		s.putBack(used)
		return false
	}
	s.published = now
	return true
}

// forget drops a key unused for long. A concurrent use may be lost.
func (m *Meter) forget(key any, s *sum, now time.Time) {
	if now.UnixNano()-s.last.Load() > int64(forgetIdle) && m.byKey.CompareAndDelete(key, s) {
		m.keys.Add(-1)
	}
}

// take empties the sum.
func (s *sum) take() (used contract.KeyUsed, any bool) {
	used = contract.KeyUsed{
		Organization: s.who.Organization, Project: s.who.Project, APIKey: s.who.ID,
		Accepted: s.counts[Accepted].Swap(0), Rejected: s.counts[Rejected].Swap(0), Refused: s.counts[Refused].Swap(0), Read: s.counts[Read].Swap(0),
	}
	if used.Accepted+used.Rejected+used.Refused+used.Read == 0 {
		return used, false
	}
	used.LastUsedAt = time.Unix(0, s.last.Load()).UTC()
	if used.Accepted > 0 {
		first := used.LastUsedAt
		if at := s.firstAccepted.Swap(0); at != 0 {
			first = time.Unix(0, at).UTC()
		}
		used.FirstAcceptedAt = &first
	}
	if by := s.sender.Load(); by != nil {
		used.Address, used.Client = httpapi.AddressText(by.address), httpapi.ClipUserAgent(by.client, contract.MaxClient)
	}
	return used, true
}

// putBack counts again what could not be published.
func (s *sum) putBack(used contract.KeyUsed) {
	for outcome, n := range map[Outcome]int64{Accepted: used.Accepted, Rejected: used.Rejected, Refused: used.Refused, Read: used.Read} {
		s.counts[outcome].Add(n)
	}
	if used.FirstAcceptedAt != nil {
		s.firstAccepted.Store(used.FirstAcceptedAt.UnixNano())
	}
}

// Measure shows how many keys the meter counts, and what it missed.
func (m *Meter) Measure(registerer prometheus.Registerer) {
	metrics := promauto.With(registerer)
	metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_watched_keys", Help: "API keys whose use is counted in memory."},
		func() float64 { return float64(m.Keys()) })
	metrics.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_missed_key_uses_total", Help: "Uses of API keys that were not counted, because too many keys were in use at once.",
	}, func() float64 { return float64(m.Missed()) })
}
