package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Defaults of a LimiterConfig.
const (
	defaultWaiting = 16
	defaultQueue   = 256
	defaultWait    = 5 * time.Second // shorter than clients wait
)

const retryOverloaded = 2 * time.Second

// A LimiterConfig configures a Limiter.
type LimiterConfig struct {
	Slots           int           // at once, at least 1
	PerOrganization int           // of these; 0: half of them, rounded up
	Waiting         int           // of one organization; 0: a default
	Queue           int           // that wait, of all; 0: a default
	Wait            time.Duration // longest wait; 0: a default
	Module          string        // the prefix of the metrics' names, such as "weir_grouping"
	Noun            string        // of what is limited, in the metrics' names, such as "reads"
	Asked           string        // its name in refusals; empty: the noun
	Reasons         []string      // for which Refuse is called
}

// A Limiter shares what a module does at once for requests, such as reads
// of its database, among organizations. One that asks without pause has its
// share and a bounded queue, and others do not wait behind it. It is safe
// for concurrent use.
type Limiter struct {
	asked   string
	slots   *fairshare.Limiter
	refused *prometheus.CounterVec
}

// Why a Limiter refuses a request.
const (
	refusedLine = "line" // its organization has too many
	refusedWait = "wait" // it waited too long, or too many wait
)

// NewLimiter returns a limiter with its metrics.
func NewLimiter(config LimiterConfig, metrics prometheus.Registerer) *Limiter {
	perKey := cmp.Or(config.PerOrganization, (config.Slots+1)/2)
	with, name, help := promauto.With(metrics), config.Module+"_"+config.Noun, strings.ToUpper(config.Noun[:1])+config.Noun[1:]
	l := &Limiter{
		asked: cmp.Or(config.Asked, config.Noun),
		slots: fairshare.NewLimiter(fairshare.Limits{
			Capacity: int64(config.Slots), PerKey: int64(perKey), Leases: perKey + cmp.Or(config.Waiting, defaultWaiting),
			Queue: cmp.Or(config.Queue, defaultQueue), Wait: cmp.Or(config.Wait, defaultWait),
		}),
		refused: with.NewCounterVec(prometheus.CounterOpts{
			Name: name + "_refused_total", Help: help + " that were refused because their organization had its share, or their turn did not come.",
		}, []string{"reason"}),
	}
	for _, reason := range append([]string{refusedLine, refusedWait}, config.Reasons...) {
		l.refused.WithLabelValues(reason)
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: name + "_running", Help: help + " at work."},
		func() float64 { return float64(l.slots.Held()) })
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: name + "_waiting", Help: help + " that wait for their turn."},
		func() float64 { return float64(l.slots.Queued()) })
	return l
}

// Acquire waits for an organization's turn, which lasts until release is
// called. The holder of a turn must not ask for a second one. A Problem
// 429 means that its share is used up, or that its turn did not come.
func (l *Limiter) Acquire(ctx context.Context, organization string) (release func(), err error) {
	lease, err := l.slots.Acquire(ctx, organization, 1)
	switch {
	case errors.Is(err, fairshare.ErrTooMany):
		return nil, l.Refuse(refusedLine, "Too many "+l.asked+" of your organization wait for their turn. Send fewer at once.")
	case errors.Is(err, fairshare.ErrFull):
		return nil, l.RefuseLate()
	case err != nil:
		return nil, err
	}
	return lease.Release, nil
}

// RefuseLate refuses a request that waited too long.
func (l *Limiter) RefuseLate() error {
	return l.Refuse(refusedWait, "The "+l.asked+" before yours take too long. Try again.")
}

// Refuse counts a refusal, and returns the Problem 429.
func (l *Limiter) Refuse(reason, detail string) error {
	l.refused.WithLabelValues(reason).Inc()
	return NewProblem(http.StatusTooManyRequests, "overloaded", detail).RetryAfter(retryOverloaded)
}

// Refusals paces answers with 429. Clients that never pause wait only for
// answers, and refusals are so cheap that thousands a second take a processor
// from the clients that are served. The first few are sent at once.
type Refusals struct {
	networks *fairshare.Table[netip.Prefix]
	held     atomic.Int64
}

// Limits of the pace. Beyond the most that are held, refusals are sent
// at once: memory is worth more than the pace.
const (
	refusalNetworks    = 1 << 16
	longestRefusal     = time.Second
	maxPendingRefusals = 2048
)

var refusalRate = fairshare.Rate{Burst: 500, PerSecond: 100}

// NewRefusals returns a pacer without any history.
func NewRefusals() *Refusals {
	return &Refusals{networks: fairshare.NewTable[netip.Prefix](refusalNetworks)}
}

// Pace returns once a client network may have the answer err: at once,
// unless it is one of very many 429s.
func (r *Refusals) Pace(ctx context.Context, now time.Time, network netip.Prefix, err error) {
	var problem *Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusTooManyRequests {
		return
	}
	r.Hold(ctx, now, network)
}

// Hold is Pace for a refusal shown on a page. A client that leaves is
// held too, as a request in flight on its connection: otherwise a client
// that resets its streams would be refused as fast as it can ask.
func (r *Refusals) Hold(ctx context.Context, now time.Time, network netip.Prefix) {
	wait := r.networks.Wait(now, network, refusalRate)
	if wait < longestRefusal { // so that a network's debt ends soon after its last request
		r.networks.Spend(now, network, 1, refusalRate)
	}
	if wait > 0 {
		r.hold(ctx, min(wait, longestRefusal))
	}
}

func (r *Refusals) hold(ctx context.Context, wait time.Duration) {
	defer r.held.Add(-1)
	if r.held.Add(1) > maxPendingRefusals {
		return
	}
	lifecycle.Pause(context.WithoutCancel(ctx), wait)
}

// anonymousNetworks is the number of client networks with their own limit.
const anonymousNetworks = 1 << 16

// AnonymousLimit limits requests without a credential by client network.
type AnonymousLimit struct {
	networks  *fairshare.Table[netip.Prefix]
	perMinute int
	refusals  *Refusals
	proxies   []netip.Prefix
	clock     func() time.Time
}

// NewAnonymousLimit admits so many requests per minute and network, which
// may come at once. It finds clients behind proxies as ClientAddress does.
func NewAnonymousLimit(perMinute int, proxies []netip.Prefix, clock func() time.Time) *AnonymousLimit {
	return &AnonymousLimit{
		networks: fairshare.NewTable[netip.Prefix](anonymousNetworks), perMinute: perMinute, refusals: NewRefusals(), proxies: proxies, clock: clock,
	}
}

// Admit counts a request, and returns the 429 for one too many, paced
// as other refusals are.
func (l *AnonymousLimit) Admit(r *http.Request) error {
	now, network := l.clock(), ClientNetwork(ClientAddress(r, l.proxies))
	result := l.networks.Take(now, fairshare.KeyLimit[netip.Prefix]{Scope: fairshare.ScopeClient, Key: network, PerMinute: l.perMinute})
	if result.Allowed {
		return nil
	}
	err := RateLimited(result, "address without a credential")
	l.refusals.Pace(r.Context(), now, network, err)
	return err
}
