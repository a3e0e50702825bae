package connections

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
)

// Rates limit what one network may cost that serves nobody. Work is in
// units of about a microsecond of a processor.
type Rates struct {
	Work     fairshare.Rate
	Arrivals fairshare.Rate // new connections

	// Patience is how long a connection may wait for Work in all,
	// without an answer, before it is closed.
	Patience time.Duration
}

const (
	faultArrivals  = 10 // a connection closed for a fault costs as much as so many new ones
	longestArrival = 5 * time.Second
	ratedNetworks  = 1 << 16
)

// defaultRates are for networks of DefaultPerNetwork connections, or
// fewer; larger ones stand for more clients.
func defaultRates(limits Limits) Rates {
	n := int64(max(1, limits.PerNetwork/DefaultPerNetwork))
	return Rates{
		Work: fairshare.Rate{Burst: 32_000 * n, PerSecond: 3200 * n}, Arrivals: fairshare.Rate{Burst: 1000 * n, PerSecond: 50 * n}, Patience: 10 * time.Second,
	}
}

// ErrFlood means that a connection brings little but work.
var ErrFlood = errors.New("the connection brings more work than its network may without an answer")

// allowances count what networks cost.
type allowances struct {
	Rates
	clock          func() time.Time
	work, arrivals *fairshare.Table[netip.Prefix]
}

func newAllowances(config Config) *allowances {
	return &allowances{
		Rates: config.Rates, clock: config.Clock,
		work: fairshare.NewTable[netip.Prefix](ratedNetworks), arrivals: fairshare.NewTable[netip.Prefix](ratedNetworks),
	}
}

// spend takes work from what a network has, and returns how long it has
// to wait then.
func (a *allowances) spend(network netip.Prefix, work int64) (wait time.Duration) {
	now := a.clock()
	a.work.Spend(now, network, work, a.Work)
	return a.work.Wait(now, network, a.Work)
}

// count counts connections that came and returns the wait of the last;
// beyond the longest wait it counts none, so that others in the network
// can connect soon after a thousand faults.
func (a *allowances) count(network netip.Prefix, arrivals int64) (wait time.Duration, counted bool) {
	now := a.clock()
	if a.arrivals.Wait(now, network, a.Arrivals) > longestArrival {
		return 0, false
	}
	a.arrivals.Spend(now, network, arrivals, a.Arrivals)
	return a.arrivals.Wait(now, network, a.Arrivals), true
}

// payBack returns the cost of an arrival.
func (a *allowances) payBack(network netip.Prefix) {
	a.arrivals.Refund(a.clock(), fairshare.KeyLimit[netip.Prefix]{Key: network, PerMinute: int(60 * a.Arrivals.PerSecond)})
}

// An Account is what a connection costs its network. What is of use is
// paid back; beyond the network's rate the connection waits. Trusted
// proxies have no rate: they stand for many networks.
type Account struct {
	table   *Table
	network netip.Prefix
	free    bool

	gone    chan struct{} // closed with the connection
	closing sync.Once
	faulty  sync.Once
	served  atomic.Bool
	waited  atomic.Int64 // nanoseconds since the last answer
}

func newAccount(t *Table, network netip.Prefix, trusted bool) *Account {
	return &Account{table: t, network: network, free: trusted, gone: make(chan struct{})}
}

// Arrive waits until the network may have one more connection, and
// reports whether it may. Call it before anything is computed.
func (a *Account) Arrive() bool {
	if a.free {
		return true
	}
	wait, admitted := a.table.allowances.count(a.network, 1)
	if admitted && wait > 0 {
		a.table.metrics.delayed(Arrivals)
		a.pause(wait)
	}
	return admitted
}

// Spend charges work, and waits while the network's rate is used up.
// The caller closes the connection after ErrFlood.
func (a *Account) Spend(work int64) error {
	if a.free {
		return nil
	}
	wait := a.table.allowances.spend(a.network, work)
	if wait == 0 {
		return nil
	}
	if a.waited.Add(int64(wait)) > int64(a.table.allowances.Patience) {
		a.close(reasonFlood)
		return ErrFlood
	}
	a.table.metrics.delayed(reasonFlood)
	a.pause(wait)
	return nil
}

// Answered notes an answer, after which the connection may wait again;
// the first useful one pays for its arrival.
func (a *Account) Answered(useful bool) {
	a.waited.Store(0)
	if !a.free && useful && !a.served.Swap(true) {
		a.table.allowances.payBack(a.network)
	}
}

// Fault notes a protocol error that closes the connection: to come again
// costs its network more.
func (a *Account) Fault() { a.close(reasonProtocol) }

func (a *Account) close(reason Reason) {
	a.faulty.Do(func() {
		a.table.metrics.closed(reason)
		if !a.free {
			a.table.allowances.count(a.network, faultArrivals)
		}
	})
}

// pause waits, or ends early with the connection.
func (a *Account) pause(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.gone:
	}
}

func (a *Account) end() { a.closing.Do(func() { close(a.gone) }) }

// Defaults and reserves. An idle connection over TLS costs 40 KB, 47 KB
// with HTTP/2 (measured with 5,000), so that DefaultTotal of them take
// less than a fifth of 512 MB.
const (
	DefaultTotal      = 2048
	DefaultPerNetwork = 512

	reservedFiles = 512 // for the database, the broker and files; half of all if there are fewer than twice as many
)

// Limits limit a Table. Half as many may be silent: without a handshake
// or request yet.
type Limits struct {
	Total      int
	PerNetwork int // of one client network; trusted proxies are no clients
}

// Within fits the limits to the number of files that this process may
// open: 0 gets its default, reduced to that number. An explicit limit
// beyond it is an error.
func (l Limits) Within(files int) (Limits, error) {
	most := max(files/2, files-reservedFiles)
	if l.Total > most {
		return Limits{}, fmt.Errorf("cannot hold %d connections: this process may open %d files and keeps %d of them for other things; "+
			"raise its limit (ulimit -n) or set WEIR_MAX_CONNECTIONS to at most %d", l.Total, files, files-most, most)
	}
	if l.Total == 0 {
		l.Total = min(DefaultTotal, most)
	}
	if l.PerNetwork == 0 {
		l.PerNetwork = min(DefaultPerNetwork, max(1, l.Total/2))
	}
	return l, nil
}

// Files returns how many files this process may open.
func Files() (int, error) {
	var limit syscall.Rlimit // its soft limit equals the hard one since the process began: see package os
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("cannot ask how many files may be open: %w", err)
	}
	return int(min(limit.Cur, 1<<30)), nil
}

func (l Limits) silent() int           { return max(1, l.Total/2) }
func (l Limits) silentPerNetwork() int { return max(1, l.PerNetwork/2) }
