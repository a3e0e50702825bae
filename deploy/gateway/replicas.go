package gateway

import (
	"context"
	"errors"
	"fmt"
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

// maxReplicas are used of a module. Its name may have more addresses.
const maxReplicas = 64

// errSilent ends the requests that wait for a replica.
var errSilent = errors.New("the replica does not answer")

// A Lookup returns the addresses of a name, as net.Resolver.LookupHost does.
type Lookup func(ctx context.Context, host string) ([]string, error)

// Replicas are all replicas of a module: the addresses of its name. Run asks
// each whether it is ready. A request goes to the least busy one of those that
// are, else of those that answer, else of all.
//
// It goes on to another replica if one is not reached or ends without having
// read its body, or, if it is a GET without one, is lost in any way. So no
// request that may have had an effect is sent twice.
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
	state state
	busy  int             // requests under way
	here  context.Context //nolint:containedctx // of its requests: done once it is left
	leave context.CancelCauseFunc
}

// newReplica is waiting: until it was asked, others are better.
func newReplica(host string) *replica {
	one := &replica{host: host, state: waiting}
	one.here, one.leave = context.WithCancelCause(context.Background())
	return one
}

// Run looks for replicas and asks them until ctx ends.
func (r *Replicas) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		var asked sync.WaitGroup
		asked.Go(func() { r.look(ctx) })
		for _, one := range r.replicas() {
			asked.Go(func() { r.say(one, r.ask(ctx, one.host)) })
		}
		asked.Wait()
		r.measure()
		lifecycle.Pause(ctx, probeInterval)
	}
	return nil
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
	answer, err := r.transport.RoundTrip(aim(ctx, &http.Request{Method: http.MethodGet, URL: &at, Header: http.Header{}}, host))
	if err != nil {
		return silent
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return waiting
	}
	return ready
}

// say notes what a replica says. One that became silent is left, unless all
// are: then the machine is busy, and to wait is better than to fail.
func (r *Replicas) say(one *replica, now state) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (one.state == silent) != (now == silent) {
		r.logger.Info("a replica has begun or ceased to answer", slog.String("module", r.target.Host), slog.String("replica", one.host), slog.String("state", now.String()))
	}
	one.state = now
	others := slices.ContainsFunc(r.known, func(other *replica) bool { return other.state != silent })
	if now == silent && others {
		one.leave(errSilent)
		one.here, one.leave = context.WithCancelCause(context.Background())
	}
}

func (r *Replicas) measure() {
	if r.count == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var by [silent + 1]float64
	for _, one := range r.known {
		by[one.state]++
	}
	for s, n := range by {
		r.count.WithLabelValues(r.target.Hostname(), state(s).String()).Set(n)
	}
}

// take chooses a replica for a request, apart from those that it was at; nil: none is left.
func (r *Replicas) take(were []*replica) (*replica, context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var best *replica
	for _, one := range r.known {
		if !slices.Contains(were, one) && (best == nil || one.state < best.state || one.state == best.state && one.busy < best.busy) {
			best = one
		}
	}
	if best == nil {
		return nil, nil
	}
	best.busy++
	return best, best.here
}

func (r *Replicas) giveBack(one *replica) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.busy--
}

// RoundTrip sends a request to a replica, or more than one as Replicas says.
func (r *Replicas) RoundTrip(request *http.Request) (answer *http.Response, err error) {
	err = fmt.Errorf("%s has no address", r.target.Host)
	for were := []*replica(nil); ; {
		to, here := r.take(were)
		if to == nil {
			return nil, err
		}
		one := &attempt{request: request, ended: func() { r.giveBack(to) }}
		if answer, err = one.send(here, r.transport, to.host); err == nil || request.Context().Err() != nil || !one.mayRepeat(err) {
			return answer, err
		}
		were = append(were, to)
	}
}
