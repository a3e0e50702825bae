package connections

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/wallclock"
)

// rated is a table with default limits by the bubble's clock.
func rated(registry prometheus.Registerer) *Table {
	t := table(Limits{Total: DefaultTotal, PerNetwork: DefaultPerNetwork}, registry)
	t.allowances.clock = time.Now
	return t
}

var rates = defaultRates(Limits{PerNetwork: DefaultPerNetwork})

func account(t *Table, address string) *Account { return t.Admit(&peer{address: address}).Account }

// spendFor spends work in steps for d, and returns how much it could.
func spendFor(t *testing.T, a *Account, d time.Duration, step int64) (spent int64) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < d; spent += step {
		testenv.Must(t, a.Spend(step))
		a.Answered(false)
	}
	return spent
}

// Work beyond the burst waits for the network's rate, on all its
// connections together; other networks and trusted proxies do not.
func TestWorkIsLimitedByNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := rated(nil)
		first, second := account(tab, "192.0.2.1"), account(tab, "192.0.2.1")
		done := make(chan int64)
		go func() { done <- spendFor(t, second, 10*time.Second, 8) }()
		spent := spendFor(t, first, 10*time.Second, 8) + <-done
		if most := rates.Work.Burst + 10*rates.Work.PerSecond + 100; spent > most || spent < most-1000 {
			t.Errorf("10 s did %d units of work, at most %d", spent, most)
		}
		for _, address := range []string{"192.0.2.2", "10.0.0.1"} {
			begun := time.Now()
			if err := account(tab, address).Spend(rates.Work.Burst); err != nil || time.Since(begun) > 0 {
				t.Errorf("%s waits for %s: %v", address, time.Since(begun), err)
			}
		}
		begun, proxy := time.Now(), account(tab, "10.0.0.1")
		for range 100 {
			if err := proxy.Spend(rates.Work.Burst); err != nil || !proxy.Arrive() {
				t.Fatal("a trusted proxy is limited", err)
			}
		}
		if time.Since(begun) > 0 {
			t.Errorf("a trusted proxy waits for %s", time.Since(begun))
		}
	})
}

// A connection that has waited too long without an answer floods; one
// that is answered meanwhile does not.
func TestFloodsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		tab := rated(registry)
		flood := account(tab, "192.0.2.1")
		begun := time.Now()
		var err error
		for err == nil && time.Since(begun) < time.Hour {
			err = flood.Spend(8)
		}
		if took := time.Since(begun); !errors.Is(err, ErrFlood) || took > rates.Patience || took < rates.Patience-time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		if n := testutil.ToFloat64(tab.metrics.closings.WithLabelValues("flood")); n != 1 {
			t.Errorf("%v were closed as floods", n)
		}
		spendFor(t, account(tab, "192.0.2.1"), 10*rates.Patience, 8)
		if n := testutil.ToFloat64(tab.metrics.delays.WithLabelValues("flood")); n < 100 {
			t.Errorf("%v delays", n)
		}
	})
}

// A closed connection waits no longer.
func TestWaitsEndWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := rated(nil).Admit(&peer{address: "192.0.2.1"})
		begun := time.Now()
		time.AfterFunc(time.Second, func() { _ = conn.Close() })
		if err := conn.Account.Spend(rates.Work.Burst + 5*rates.Work.PerSecond); err != nil || time.Since(begun) != time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

// connects makes connections of one network for d, each as soon as the
// one before was admitted or refused.
func connects(tab *Table, d time.Duration, use func(*Account)) (admitted int) {
	for begun := time.Now(); time.Since(begun) < d; {
		conn := tab.Admit(&peer{address: "192.0.2.1"})
		if conn.Account.Arrive() {
			admitted++
			use(conn.Account)
		}
		_ = conn.Close()
		time.Sleep(time.Millisecond)
	}
	return admitted
}

// New connections of a network have a rate; those that were of use
// don't count, and protocol errors count tenfold.
func TestArrivalsAreLimited(t *testing.T) {
	for name, c := range map[string]struct {
		use   func(*Account)
		least int
		most  int
	}{
		"silent":  {func(*Account) {}, 1900, 2100},
		"useful":  {func(a *Account) { a.Answered(true); a.Answered(true) }, 19_000, 20_000},
		"refused": {func(a *Account) { a.Answered(false) }, 1900, 2100},
		"faulty":  {func(a *Account) { a.Fault(); a.Fault() }, 170, 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if n := connects(rated(nil), 20*time.Second, c.use); n < c.least || n > c.most {
					t.Errorf("%d connections in 20 s, want %d to %d", n, c.least, c.most)
				}
			})
		})
	}
}

// Beyond what can be admitted soon, a newcomer is refused at once.
func TestTooManyArrivalsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := rated(nil)
		for range rates.Arrivals.Burst + 5*rates.Arrivals.PerSecond + 1 {
			go account(tab, "192.0.2.1").Arrive()
		}
		defer time.Sleep(2 * longestArrival) // until they have arrived
		synctest.Wait()
		begun := time.Now()
		if account(tab, "192.0.2.1").Arrive() || time.Since(begun) > 0 {
			t.Errorf("one too many is not refused at once, but after %s", time.Since(begun))
		}
		if !account(tab, "192.0.2.2").Arrive() {
			t.Error("another network is refused")
		}
	})
}

// However many connections of a network are closed for a fault at once,
// it can connect again soon.
func TestFaultsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := rated(nil)
		for range 500 {
			account(tab, "192.0.2.1").Fault()
		}
		begun := time.Now()
		if account(tab, "192.0.2.1").Arrive() {
			t.Error("it can connect at once")
		}
		time.Sleep(time.Second)
		if !account(tab, "192.0.2.1").Arrive() || time.Since(begun) > longestArrival+time.Second {
			t.Errorf("it can't connect after %s", time.Since(begun))
		}
	})
}

// When the machine's clock is set, new connections are served and work is
// done as if it were not: back refuses none, forward gives no second burst.
func TestConnectionsAfterTheClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		now, tab := time.Now(), rated(nil)
		tab.allowances.clock = func() time.Time { return now }
		one := account(tab, "192.0.2.1")
		half := rates.Arrivals.Burst / 2
		tab.allowances.count(one.network, half)
		tab.allowances.spend(one.network, rates.Work.Burst/2)
		now = wallclock.Set(now, by)
		for range half {
			if wait, counted := tab.allowances.count(one.network, 1); !counted || wait > 0 {
				t.Fatalf("set by %s: a connection waits for %s, counted %t", by, wait, counted)
			}
		}
		if wait := tab.allowances.spend(one.network, rates.Work.Burst/2); wait > 0 {
			t.Errorf("set by %s: work waits for %s", by, wait)
		}
		if wait, _ := tab.allowances.count(one.network, 1); wait == 0 {
			t.Errorf("set by %s: more connections than the burst do not wait", by)
		}
		if tab.allowances.spend(one.network, 8) == 0 {
			t.Errorf("set by %s: more work than the burst does not wait", by)
		}
	}
}
