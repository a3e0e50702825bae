package connections

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/testenv"
)

// A peer is a fake connection from an address.
type peer struct {
	net.Conn
	address string
	closed  bool
}

func (p *peer) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(p.address + ":1"))
}
func (p *peer) Close() error { p.closed = true; return nil }

// table trusts 10.0.0.0/8.
func table(limits Limits, registry prometheus.Registerer) *Table {
	return New(Config{Limits: limits, Metrics: registry, Network: func(remote net.Addr) (netip.Prefix, bool) {
		address := netip.MustParseAddrPort(remote.String()).Addr()
		return netip.PrefixFrom(address, 32), address.As4()[0] == 10
	}})
}

// crowd admits n connections from address, each in a state.
func crowd(t *Table, n int, address string, state State) []*peer {
	var peers []*peer
	for range n {
		p := &peer{address: address}
		if conn := t.Admit(p); conn != nil {
			conn.Set(state)
		}
		peers = append(peers, p)
	}
	return peers
}

func open(peers []*peer) (open int) {
	for _, p := range peers {
		if !p.closed {
			open++
		}
	}
	return open
}

// Silent connections of one network displace each other, and at most
// half of its share is silent.
func TestSilentConnectionsAreFewer(t *testing.T) {
	tab := table(Limits{Total: 100, PerNetwork: 20}, nil)
	silent := crowd(tab, 200, "192.0.2.1", Silent)
	if open(silent) != 10 || open(silent[190:]) != 10 {
		t.Errorf("%d are open, %d of the newest ten", open(silent), open(silent[190:]))
	}
	if quiet := crowd(tab, 1, "192.0.2.2", Silent); open(quiet) != 1 || open(silent) != 10 {
		t.Error("another network's had to give way, or made them")
	}
}

// With too many silent connections in all, the network with most loses one.
func TestSilentConnectionsOfManyNetworks(t *testing.T) {
	tab := table(Limits{Total: 40, PerNetwork: 20}, nil)
	first, second := crowd(tab, 8, "192.0.2.1", Silent), crowd(tab, 10, "192.0.2.2", Silent)
	third := crowd(tab, 4, "192.0.2.3", Silent)
	if open(first) != 8 || open(second) != 8 || open(third) != 4 || !second[0].closed {
		t.Errorf("open: %d, %d, %d", open(first), open(second), open(third))
	}
}

// A network at its limit loses its oldest idle connection, not an
// active or a new one.
func TestNetworkLimit(t *testing.T) {
	tab := table(Limits{Total: 100, PerNetwork: 10}, nil)
	active, idle := crowd(tab, 5, "192.0.2.1", Active), crowd(tab, 5, "192.0.2.1", Idle)
	fresh := crowd(tab, 2, "192.0.2.1", Silent)
	if open(active) != 5 || open(fresh) != 2 || open(idle) != 3 || !idle[0].closed || !idle[1].closed {
		t.Errorf("open: %d active, %d idle, %d new", open(active), open(idle), open(fresh))
	}
	if more := crowd(tab, 100, "192.0.2.1", Active); open(active) != 5 || tab.Count(Active) != 10 || open(more) != 5 {
		t.Errorf("open: %d active, %d in all", open(active), tab.Count(Active))
	}
}

// At the total limit, a newcomer replaces the oldest idle connection of
// the network with most.
func TestTotalLimit(t *testing.T) {
	tab := table(Limits{Total: 10, PerNetwork: 10}, nil)
	few, many := crowd(tab, 2, "192.0.2.1", Idle), crowd(tab, 8, "192.0.2.2", Idle)
	fresh := crowd(tab, 1, "192.0.2.3", Silent)
	if open(few) != 2 || open(many) != 7 || !many[0].closed || open(fresh) != 1 {
		t.Errorf("open: %d few, %d many, %d new", open(few), open(many), open(fresh))
	}
}

// When all connections are in a request, a few networks that hold all
// of them give way to others, until they have about as many.
func TestFewNetworksGiveWay(t *testing.T) {
	tab := table(Limits{Total: 16, PerNetwork: 8}, nil)
	first, second := crowd(tab, 8, "192.0.2.1", Active), crowd(tab, 8, "192.0.2.2", Active)
	quiet := crowd(tab, 2, "192.0.2.3", Active)
	if open(quiet) != 2 || open(first)+open(second) != 14 || !first[0].closed {
		t.Errorf("open: %d, %d, %d quiet", open(first), open(second), open(quiet))
	}
	if more := crowd(tab, 8, "192.0.2.3", Active); open(more) > 4 {
		t.Errorf("the third network has %d more, at the cost of the others", open(more))
	}
}

// When all connections are in a request and no network holds clearly
// more than the others, newcomers are refused, and none is interrupted.
func TestActiveConnectionsStay(t *testing.T) {
	registry := prometheus.NewRegistry()
	tab := table(Limits{Total: 4, PerNetwork: 5}, registry)
	active := append(crowd(tab, 2, "192.0.2.1", Active), crowd(tab, 2, "192.0.2.3", Active)...)
	if fresh := crowd(tab, 1, "192.0.2.2", Silent); open(fresh) != 0 || open(active) != 4 {
		t.Errorf("%d new, %d active", open(fresh), open(active))
	}
	want := `
# HELP weir_http_connections_closed_total Connections closed to make room, for want of room, for their network's rate, for a protocol error, or because their reader took nothing.
# TYPE weir_http_connections_closed_total counter
weir_http_connections_closed_total{reason="refused"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "weir_http_connections_closed_total"); err != nil {
		t.Error(err)
	}
}

// A trusted proxy stands for many clients: only the total limits it,
// and it gives way last.
func TestProxies(t *testing.T) {
	tab := table(Limits{Total: 20, PerNetwork: 4}, nil)
	proxied := crowd(tab, 18, "10.0.0.1", Idle)
	crowd(tab, 2, "192.0.2.1", Idle)
	strangers := crowd(tab, 10, "192.0.2.2", Silent)
	if open(proxied) != 18 {
		t.Errorf("%d of 18 connections of a proxy are left beside %d strangers", open(proxied), open(strangers))
	}
	if more := crowd(tab, 20, "10.0.0.1", Active); open(more) != 20 {
		t.Errorf("%d of 20 requests of a proxy find a place", open(more))
	}
}

// Closed connections are forgotten, and so are networks without any.
func TestClosedConnectionsAreForgotten(t *testing.T) {
	tab := table(Limits{Total: 2, PerNetwork: 1}, nil)
	for range 10 {
		conn := tab.Admit(&peer{address: "192.0.2.1"})
		conn.Set(Idle)
		_ = conn.Close()
		conn.Set(Active) // too late
	}
	crowd(tab, 10, "192.0.2.1", Idle)
	if tab.total() != 1 || len(tab.networks) != 1 {
		t.Errorf("%d connections of %d networks", tab.total(), len(tab.networks))
	}
}

// A stalled reader is closed, whatever write deadline is set.
func TestSlowReadersAreClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	defer listener.Close()
	reader, err := net.Dial("tcp", listener.Addr().String())
	testenv.Must(t, err)
	defer reader.Close()
	raw, err := listener.Accept()
	testenv.Must(t, err)
	tab := New(Config{Limits: Limits{10, 10}, Stall: 50 * time.Millisecond, Network: func(net.Addr) (netip.Prefix, bool) {
		return netip.MustParsePrefix("192.0.2.1/32"), false
	}})
	conn := tab.Admit(raw)
	conn.Set(Active)
	_ = conn.SetWriteDeadline(time.Now().Add(time.Hour))
	for err == nil {
		_, err = conn.Write(make([]byte, 1<<20))
	}
	if n := testutil.ToFloat64(tab.metrics.closings.WithLabelValues(string(reasonSlow))); n != 1 || tab.total() != 0 {
		t.Errorf("%v; %v closed for their slowness, %d left", err, n, tab.total())
	}
}

// The limits fit the number of files; impossible ones are refused at the start.
func TestLimitsWithinFiles(t *testing.T) {
	for _, c := range []struct {
		asked Limits
		files int
		want  Limits
	}{
		{Limits{}, 20_000, Limits{DefaultTotal, DefaultPerNetwork}},
		{Limits{}, 1024, Limits{512, 256}},
		{Limits{}, 256, Limits{128, 64}},
		{Limits{10_000, 100}, 20_000, Limits{10_000, 100}},
	} {
		if got, err := c.asked.Within(c.files); err != nil || got != c.want {
			t.Errorf("%+v within %d files: %+v, %v; want %+v", c.asked, c.files, got, err, c.want)
		}
	}
	if _, err := (Limits{Total: 1000}).Within(1024); err == nil || !strings.Contains(err.Error(), "at most 512") {
		t.Errorf("1000 connections of 1024 files: %v", err)
	}
}
