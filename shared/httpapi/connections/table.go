package connections

import (
	"cmp"
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/fairshare"
)

// A State is what a connection does.
type State int

// The states. Silent and Idle connections may be closed to make room.
const (
	Silent State = iota // no request yet, perhaps no handshake
	Idle                // between requests
	Active              // in a request
	states
)

// A Reason says why connections are closed here, not by their ends, or
// have to wait.
type Reason string

// The reasons.
const (
	reasonNetwork  Reason = "network_limit" // for another one of the same network
	reasonTotal    Reason = "total_limit"
	reasonSilent   Reason = "silent_limit"
	reasonRefused  Reason = "refused" // no room, and nothing to close
	reasonSlow     Reason = "slow_reader"
	reasonFlood    Reason = "flood" // of frames that ask for nothing
	reasonProtocol Reason = "protocol_error"

	HandshakeQueue Reason = "handshake_queue" // too many of its network wait for a handshake
	Arrivals       Reason = "arrivals"        // its network makes new ones too fast
)

// Config configures a Table.
type Config struct {
	Limits  Limits
	Network func(remote net.Addr) (network netip.Prefix, trusted bool) // of a client; only Total limits a trusted proxy
	Stall   time.Duration                                              // after which a stalled reader is closed; 0: a default
	Clock   func() time.Time
	Rates   Rates                 // zero: defaults by Limits
	Metrics prometheus.Registerer // may be nil
}

// A Table holds the open connections. It is safe for concurrent use.
type Table struct {
	config     Config
	metrics    *metrics
	allowances *allowances

	mu       sync.Mutex
	networks map[netip.Prefix]*network // bounded by the open connections
	count    [states]int
	silent   *fairshare.Ranking[*network] // clients by connections in Silent
	closable *fairshare.Ranking[*network] // clients by connections in Silent and Idle
	proxies  *fairshare.Ranking[*network] // trusted proxies, likewise: they give way last, as each stands for many clients
	busiest  *fairshare.Ranking[*network] // clients by all their connections
}

// A network holds one client network's connections.
type network struct {
	key     netip.Prefix
	trusted bool
	lists   [states]*list.List // of *Conn, longest in this state first
}

// New returns an empty table.
func New(config Config) *Table {
	config.Stall = cmp.Or(config.Stall, stallTimeout)
	config.Rates = cmp.Or(config.Rates, defaultRates(config.Limits))
	ranking := fairshare.NewRanking[*network]
	t := &Table{
		config: config, allowances: newAllowances(config), networks: map[netip.Prefix]*network{},
		silent: ranking(), closable: ranking(), proxies: ranking(), busiest: ranking(),
	}
	t.metrics = newMetrics(config.Metrics, t, config.Limits.Total)
	return t
}

// Admit adds an accepted connection, and closes another one if there is
// no room. If none can be closed, it closes this one and returns nil.
func (t *Table) Admit(raw net.Conn) *Conn {
	key, trusted := t.config.Network(raw.RemoteAddr())
	t.mu.Lock()
	n := t.network(key, trusted)
	closing, reason, admitted := t.makeRoom(n)
	conn := newConn(raw, t, key, trusted)
	idle := closing != nil && closing.state == Idle
	if closing != nil {
		t.leave(closing)
	}
	if admitted {
		conn.network = n
		t.enter(conn, Silent)
	}
	t.forget(n)
	t.mu.Unlock()
	if reason != "" {
		t.metrics.closed(reason)
	}
	if closing != nil {
		closing.giveWay(idle)
	}
	if !admitted {
		conn.abort()
		return nil
	}
	return conn
}

// makeRoom decides which connection, if any, gives way to a new one of
// n. One is always enough, as limits are kept.
func (t *Table) makeRoom(n *network) (closing *Conn, reason Reason, admitted bool) {
	limits := t.config.Limits
	switch {
	case !n.trusted && n.lists[Silent].Len() >= limits.silentPerNetwork():
		closing, reason = oldest(n, Silent), reasonSilent
	case !n.trusted && n.total() >= limits.PerNetwork:
		closing, reason = oldest(n, Idle, Silent), reasonNetwork
	case t.total() >= limits.Total:
		closing, reason = t.oldestOfLargest(n), reasonTotal
	case t.count[Silent] >= limits.silent() && t.silent.First() != nil:
		closing, reason = oldest(t.silent.First(), Silent), reasonSilent
	default:
		return nil, "", true
	}
	if closing == nil {
		return nil, reasonRefused, false
	}
	return closing, reason, true
}

// clearlyMore is how many times the newcomer's connections a network
// must have before one in a request is closed for it.
const clearlyMore = 2

// oldestOfLargest returns the connection that gives way to the newcomer's at
// the total limit. If all are in a request, the network with clearly most
// loses one: a few networks with open requests must not shut all others out.
func (t *Table) oldestOfLargest(newcomer *network) *Conn {
	for _, ranking := range []*fairshare.Ranking[*network]{t.closable, t.proxies} {
		if n := ranking.First(); n != nil {
			return oldest(n, Idle, Silent)
		}
	}
	if n := t.busiest.First(); n != nil && n.total() > clearlyMore*(newcomer.total()+1) {
		return oldest(n, Active)
	}
	return nil
}

// oldest returns the oldest connection of n in the first of these
// states with any, or nil.
func oldest(n *network, among ...State) *Conn {
	for _, state := range among {
		if first := n.lists[state].Front(); first != nil {
			return first.Value.(*Conn)
		}
	}
	return nil
}

// set sets a connection's state.
func (t *Table) set(c *Conn, state State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.place == nil || c.state == state {
		return
	}
	t.leave(c)
	t.enter(c, state)
}

// remove drops a closed connection.
func (t *Table) remove(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.place != nil {
		t.leave(c)
	}
}

func (t *Table) enter(c *Conn, state State) {
	t.networks[c.network.key] = c.network // leaving may have removed it
	c.state, c.place = state, c.network.lists[state].PushBack(c)
	t.count[state]++
	t.rank(c.network)
}

func (t *Table) leave(c *Conn) {
	c.network.lists[c.state].Remove(c.place)
	c.place = nil
	t.count[c.state]--
	t.rank(c.network)
	t.forget(c.network)
}

func (t *Table) rank(n *network) {
	closable := n.lists[Silent].Len() + n.lists[Idle].Len()
	if n.trusted {
		t.proxies.Set(n, closable)
		return
	}
	t.silent.Set(n, n.lists[Silent].Len())
	t.closable.Set(n, closable)
	t.busiest.Set(n, n.total())
}

// forget drops a network without connections.
func (t *Table) forget(n *network) {
	if n.total() == 0 {
		delete(t.networks, n.key)
	}
}

func (t *Table) network(key netip.Prefix, trusted bool) *network {
	n := t.networks[key]
	if n == nil {
		n = &network{key: key, trusted: trusted}
		for i := range n.lists {
			n.lists[i] = list.New()
		}
		t.networks[key] = n
	}
	return n
}

func (n *network) total() int {
	total := 0
	for _, l := range n.lists {
		total += l.Len()
	}
	return total
}

func (t *Table) total() int {
	total := 0
	for _, count := range t.count {
		total += count
	}
	return total
}

// Count returns how many connections are in a state.
func (t *Table) Count(state State) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count[state]
}

// metrics measure a table's use and what it closes.
type metrics struct {
	closings, delays *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer, t *Table, limit int) *metrics {
	factory := promauto.With(registerer)
	for state, name := range map[State]string{Silent: "silent", Idle: "idle", Active: "active"} {
		factory.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_http_connections", Help: "Open connections: silent before their first request, active in a request, idle between.",
			ConstLabels: prometheus.Labels{"state": name},
		}, func() float64 { return float64(t.Count(state)) })
	}
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_http_connections_limit", Help: "How many connections may be open.",
	}, func() float64 { return float64(limit) })
	return &metrics{
		closings: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_http_connections_closed_total",
			Help: "Connections closed to make room, for want of room, for their network's rate, for a protocol error, or because their reader took nothing.",
		}, []string{"reason"}),
		delays: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_http_connections_delayed_total",
			Help: "How often a connection had to wait because its network makes new ones too fast (arrivals), or sends frames that ask for nothing (flood).",
		}, []string{"reason"}),
	}
}

func (m *metrics) closed(reason Reason)  { m.closings.WithLabelValues(string(reason)).Inc() }
func (m *metrics) delayed(reason Reason) { m.delays.WithLabelValues(string(reason)).Inc() }
