package admission_test

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv/wallclock"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

var sender = identity.Principal{Organization: "org", Project: "p", ID: "k"}

func account(limit int64) ingest.Account {
	return ingest.Account{Period: calendar.PeriodAt(start, 1), AnchorDay: 1, Limit: limit, NextLimit: limit, Version: 1}
}

// Concurrent requests never exceed quota and rate while the ledger counts.
func TestGateUnderConcurrency(t *testing.T) {
	gate := admission.NewGate(func() time.Time { return start })
	gate.Apply("org", 500, account(1000))
	var entered, reserved, offset int64
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 200 {
				admitted := gate.Enter(sender)
				r, made := gate.Reserve(sender, admitted.Time, 10)
				verdict := made.Verdict
				mu.Lock()
				if admitted.Rate.Allowed {
					entered++
				}
				if verdict == ingest.Admitted {
					reserved++
					offset++
				}
				at := offset
				mu.Unlock()
				if verdict == ingest.Admitted {
					r.Settle(ingest.Outcome{Status: ingest.Published, Offset: at})
				}
			}
		})
	}
	for next := range int64(50) {
		gate.Mark(ingest.Positions{1: next}) // another partition: it counts nothing of these
	}
	wait.Wait()
	if entered != 500 || reserved != 100 {
		t.Errorf("%d entered, %d reserved", entered, reserved)
	}
}

// An organization added after the marker has the marker too.
func TestGateMarksNewcomers(t *testing.T) {
	gate := admission.NewGate(func() time.Time { return start })
	gate.Mark(ingest.Positions{0: 10})
	gate.Apply("org", 1, account(100))
	gate.Found(ingest.Charge{Organization: "org", At: start, Bytes: 100, Offset: 9})
	if _, reserved := gate.Reserve(sender, start, 100); reserved.Verdict != ingest.Admitted {
		t.Error("a counted record counts twice")
	}
	gate.Found(ingest.Charge{Organization: "org", At: start, Bytes: 100, Offset: 10})
	if _, reserved := gate.Reserve(sender, start, 1); reserved.Verdict == ingest.Admitted {
		t.Error("a record that is not counted is forgotten")
	}
}

// Bytes of unknown outcome stay reserved until they are resolved.
func TestGateResolves(t *testing.T) {
	now := start
	gate := admission.NewGate(func() time.Time { return now })
	gate.Apply("org", 1, account(100))
	r, _ := gate.Reserve(sender, now, 100)
	r.Settle(ingest.Outcome{Status: ingest.Uncertain})
	if _, reserved := gate.Reserve(sender, now, 1); reserved.Verdict != ingest.Contended || !gate.Incomplete(now.Add(time.Second)) {
		t.Fatal(reserved.Verdict)
	}
	gate.Resolve(now.Add(time.Second), ingest.Positions{0: 5})
	gate.Mark(ingest.Positions{0: 5})
	if _, reserved := gate.Reserve(sender, now, 1); reserved.Verdict != ingest.Admitted || gate.Incomplete(now.Add(time.Second)) {
		t.Fatal(reserved.Verdict)
	}
}

// A key stands for its first attempt during the window, unless that
// failed or was evicted.
func TestReplays(t *testing.T) {
	replays := admission.NewReplays(time.Hour, 3)
	key := func(n byte) admission.Digest { return admission.Digest{n} }
	attempt, first := replays.Begin("org", key(1), key(101), start)
	if !first || attempt.Answer() != nil {
		t.Fatal("the first attempt is not the first")
	}
	attempt.Fail()
	attempt, first = replays.Begin("org", key(1), key(102), start)
	if !first {
		t.Fatal("a failed attempt holds its key")
	}
	attempt.Succeed(admission.Answer{Bytes: 7})
	attempt.Fail() // after success it changes nothing
	again, first := replays.Begin("org", key(1), key(102), start.Add(time.Hour-1))
	if first || again.Answer().Bytes != 7 || again.Body() != key(102) {
		t.Fatal("the key is forgotten too early")
	}
	if _, first = replays.Begin("org", key(1), key(102), start.Add(time.Hour)); !first {
		t.Fatal("the key is remembered too long")
	}
	for n := byte(2); n <= 4; n++ {
		replays.Begin("org", key(n), key(n), start.Add(time.Hour))
	}
	if _, first = replays.Begin("org", key(1), key(102), start.Add(time.Hour)); !first {
		t.Fatal("more keys are remembered than allowed")
	}
}

// An organization with many keys evicts only its own.
func TestReplaysOfOthersStay(t *testing.T) {
	replays := admission.NewReplays(time.Hour, 4)
	key := func(n byte) admission.Digest { return admission.Digest{n} }
	replays.Begin("quiet", key(1), key(1), start)
	for n := byte(10); n < 30; n++ {
		attempt, first := replays.Begin("loud", key(n), key(n), start.Add(time.Minute))
		if !first || replays.Len() > 4 {
			t.Fatalf("key %d: first %t, %d are remembered", n, first, replays.Len())
		}
		if n == 15 {
			attempt.Fail()
		}
	}
	for _, n := range []byte{1, 27, 28, 29} {
		if _, first := replays.Begin("quiet", key(n), key(n), start.Add(time.Minute)); first {
			t.Errorf("key %d is forgotten", n)
		}
	}
	replays.Begin("third", key(40), key(40), start.Add(time.Minute))
	if _, first := replays.Begin("quiet", key(1), key(1), start.Add(time.Hour-1)); first {
		t.Error("the one key of an organization is crowded out by another's")
	}
	if replays.Begin("third", key(41), key(41), start.Add(2*time.Hour)); replays.Len() != 1 {
		t.Errorf("%d are remembered after the window", replays.Len())
	}
}

// The memory for clients is bounded, and each is limited.
func TestClients(t *testing.T) {
	clients := admission.NewClients(2)
	now := start
	network := netip.MustParsePrefix("192.0.2.1/32")
	for i, allowed := range []bool{true, true, false} {
		if got := clients.Take(network, now); got.Allowed != allowed || got.Scope != fairshare.ScopeClient {
			t.Fatalf("request %d: %+v", i, got)
		}
	}
	clients.Give(network, now)
	if !clients.Take(network, now).Allowed {
		t.Fatal("what was given back is not there")
	}
	address := netip.MustParseAddr("10.0.0.0")
	for range 1 << 17 {
		clients.Take(netip.PrefixFrom(address, 32), now)
		address = address.Next()
	}
	if n := clients.Len(); n > 1<<16 {
		t.Errorf("%d clients are remembered", n)
	}
}

// When the machine's clock is set, keys and networks have the tokens that
// they had: back refuses none, forward gives no second burst.
func TestTokensAfterTheClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		now := time.Now()
		gate, clients := admission.NewGate(func() time.Time { return now }), admission.NewClients(10)
		gate.LimitWaste(fairshare.Rate{Burst: 1000, PerSecond: 100})
		gate.Apply("org", 10, ingest.Account{Period: calendar.PeriodAt(now, 1), AnchorDay: 1, Limit: 1000, NextLimit: 1000, Version: 1})
		network := netip.MustParsePrefix("192.0.2.1/32")
		take := func(i int, allowed bool) {
			t.Helper()
			if got := gate.Enter(sender); got.Rate.Allowed != allowed || got.Wasted {
				t.Errorf("set by %s: request %d of the key: %+v", by, i, got)
			}
			if got := clients.Take(network, now); got.Allowed != allowed {
				t.Errorf("set by %s: request %d of the network: %+v", by, i, got)
			}
		}
		gate.Waste("org", 500)
		for i := range 5 {
			take(i, true)
		}
		now = wallclock.Set(now, by)
		for i := range 5 {
			take(5+i, true)
		}
		take(10, false)
	}
}

// A sender over its limit of waste waits until it has refilled; others
// don't, and no token is taken.
func TestGateLimitsWaste(t *testing.T) {
	now := start
	gate := admission.NewGate(func() time.Time { return now })
	gate.LimitWaste(fairshare.Rate{Burst: 100, PerSecond: 10})
	gate.Apply("org", 60, account(1000))
	gate.Apply("other", 60, account(1000))
	gate.Waste("org", 100)
	if p := gate.Enter(principal("org")); !p.Rate.Allowed || p.Wasted {
		t.Fatalf("within the limit: %+v", p.Rate)
	}
	gate.Waste("org", 50)
	if p := gate.Enter(principal("org")); p.Rate.Allowed || !p.Wasted || p.Rate.RetryAfter != 5*time.Second || p.Rate.Remaining != 59 {
		t.Errorf("beyond it: %+v", p.Rate)
	}
	if p := gate.Enter(principal("other")); !p.Rate.Allowed {
		t.Errorf("another: %+v", p.Rate)
	}
	now = now.Add(5 * time.Second)
	if p := gate.Enter(principal("org")); !p.Rate.Allowed {
		t.Errorf("after the wait: %+v", p.Rate)
	}
}

func principal(organization string) identity.Principal {
	return identity.Principal{Organization: organization, Project: "p", ID: "k"}
}
