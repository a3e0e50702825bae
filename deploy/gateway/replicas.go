package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/lifecycle"
)

// A replica that stops answering is left after the sum of both at most.
const (
	probeInterval = 500 * time.Millisecond
	probeTimeout  = 1500 * time.Millisecond
)

const (
	lookEvery   = 4  // probes
	maxReplicas = 64 // of a module are used; its name may have more addresses
	maxRepeats  = 1  // of a request that a replica may have seen
)

// errSilent ends the requests that wait for a replica.
var errSilent = errors.New("the replica does not answer")

// A Lookup returns the addresses of a name, as net.Resolver.LookupHost does.
type Lookup func(ctx context.Context, host string) ([]string, error)

// Replicas are all replicas of a module: the addresses of its name. Run asks
// each whether it is ready. A request goes to the least busy one of those that
// are, else of those that answer, else of all.
//
// It goes on to another replica if it was not sent, and once if it is a GET
// without a body: no request that may have had an effect is sent twice.
type Replicas struct {
	target    *url.URL
	transport http.RoundTripper
	lookup    Lookup
	count     *prometheus.GaugeVec // by state, see NewReplicaCount
	logger    *slog.Logger

	mu    sync.Mutex
	known []*replica // maxReplicas at most
}

// NewReplicas returns the replicas of the module at target: until Run finds
// others, the target itself.
func NewReplicas(target *url.URL, transport http.RoundTripper, lookup Lookup, count *prometheus.GaugeVec, logger *slog.Logger) *Replicas {
	r := &Replicas{target: target, transport: transport, lookup: lookup, count: count, logger: logger}
	r.known = []*replica{newReplica(target.Host)}
	return r
}

// NewReplicaCount returns the metric of all modules' replicas.
func NewReplicaCount(registerer prometheus.Registerer) *prometheus.GaugeVec {
	return promauto.With(registerer).NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_gateway_replicas", Help: "Replicas of a module: ready ones, waiting ones, which answer that they are not, and silent ones, which don't answer.",
	}, []string{"module", "state"})
}

// A state is what a replica last said.
type state int

// In the order of preference.
const (
	ready state = iota
	waiting
	silent
)

func (s state) String() string { return [...]string{"ready", "waiting", "silent"}[s] }

// A replica is one address of a module.
type replica struct {
	host string // with its port

	// Under the lock of Replicas.
	state  state
	busy   int             // requests under way
	ctx    context.Context //nolint:containedctx // of its requests: done once it is left
	cancel context.CancelCauseFunc
}

// newReplica is waiting: until it was asked, others are better.
func newReplica(host string) *replica {
	one := &replica{host: host, state: waiting}
	one.ctx, one.cancel = context.WithCancelCause(context.Background())
	return one
}

// Run looks for replicas and asks them until ctx ends.
func (r *Replicas) Run(ctx context.Context) error {
	for round := 0; ctx.Err() == nil; round++ {
		if round%lookEvery == 0 {
			r.look(ctx)
		}
		r.askAll(ctx)
		lifecycle.Pause(ctx, probeInterval)
	}
	return nil
}

// askAll asks all replicas at once, and then judges them together.
func (r *Replicas) askAll(ctx context.Context) {
	known := r.replicas()
	said := make([]state, len(known))
	var asked sync.WaitGroup
	for i, one := range known {
		asked.Go(func() { said[i] = r.ask(ctx, one.host) })
	}
	asked.Wait()
	if ctx.Err() == nil { // else nobody could answer
		r.note(known, said)
	}
}

func (r *Replicas) replicas() []*replica {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.known)
}

// look replaces the addresses. Requests to one that is gone go on.
func (r *Replicas) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	addresses, err := r.lookup(ctx, r.target.Hostname())
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	if err != nil || len(addresses) == 0 {
		return // those that are known stay: whether they answer, they say themselves
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.known
	r.known = nil
	for _, address := range addresses[:min(len(addresses), maxReplicas)] {
		host := net.JoinHostPort(address, r.target.Port())
		if i := slices.IndexFunc(before, func(b *replica) bool { return b.host == host }); i >= 0 {
			r.known = append(r.known, before[i])
			continue
		}
		r.known = append(r.known, newReplica(host))
	}
}

// ask returns what a replica says.
func (r *Replicas) ask(ctx context.Context, host string) state {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	at := url.URL{Scheme: r.target.Scheme, Host: r.target.Host, Path: "/readyz"}
	answer, err := r.transport.RoundTrip(withHost(ctx, &http.Request{Method: http.MethodGet, URL: &at, Header: http.Header{}}, host))
	if err != nil {
		return silent
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxReadyAnswer) // so that the connection is kept
	if answer.StatusCode != http.StatusOK {
		return waiting
	}
	return ready
}

// note notes what replicas said. Those that became silent are left, unless all
// are: then this machine or the network is busy, and to wait is better than to fail.
func (r *Replicas) note(asked []*replica, said []state) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, one := range asked {
		if (one.state == silent) != (said[i] == silent) {
			r.logger.Info("a replica has begun or ceased to answer",
				slog.String("module", r.target.Host), slog.String("replica", one.host), slog.String("state", said[i].String()))
		}
		one.state = said[i]
	}
	if slices.ContainsFunc(r.known, func(one *replica) bool { return one.state != silent }) {
		for _, one := range r.known {
			one.leave()
		}
	}
	r.measure()
}

// leave ends the requests of a replica that is silent.
func (one *replica) leave() {
	if one.state == silent {
		one.cancel(errSilent)
		one.ctx, one.cancel = context.WithCancelCause(context.Background())
	}
}

func (r *Replicas) measure() {
	var by [silent + 1]float64
	for _, one := range r.known {
		by[one.state]++
	}
	for s, n := range by {
		r.count.WithLabelValues(r.target.Hostname(), state(s).String()).Set(n)
	}
}

// take chooses a replica that was not tried; nil: none is left.
func (r *Replicas) take(tried []*replica) (*replica, context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var best *replica
	for _, one := range r.known {
		if !slices.Contains(tried, one) && (best == nil || one.state < best.state || one.state == best.state && one.busy < best.busy) {
			best = one
		}
	}
	if best == nil {
		return nil, nil
	}
	best.busy++
	return best, best.ctx
}

func (r *Replicas) giveBack(one *replica) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.busy--
}

// RoundTrip sends a request to a replica, or more than one as Replicas says.
func (r *Replicas) RoundTrip(request *http.Request) (*http.Response, error) {
	err := fmt.Errorf("%s has no address", r.target.Host)
	tried, repeats := []*replica(nil), 0
	for {
		to, ctx := r.take(tried)
		if to == nil {
			return nil, err
		}
		one := &attempt{request: request, done: func() { r.giveBack(to) }}
		var answer *http.Response
		if answer, err = one.send(ctx, r.transport, to.host); err == nil || request.Context().Err() != nil {
			return answer, err
		}
		if one.sent.Load() {
			if repeats++; repeats > maxRepeats || !harmless(request) {
				return nil, err
			}
		}
		tried = append(tried, to)
	}
}

// harmless reports whether a request has no effect.
func harmless(request *http.Request) bool {
	return (request.Method == http.MethodGet || request.Method == http.MethodHead) && (request.Body == nil || request.Body == http.NoBody)
}
