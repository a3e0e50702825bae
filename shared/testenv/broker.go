package testenv

import (
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/embedded/kafka"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Kafka gives the test a broker without topics and returns its addresses.
//
// A top-level test and its subtests share one broker while any of them that
// asked for it runs; other tests never see it. An embedded broker is the
// test's own; it refuses what Apache Kafka 4 no longer serves, and fails
// the test that tried. A given broker is used in turn by the tests of all
// packages, as the contract fixes the names of topics. The topics and
// groups of the contract, and those whose names begin with "test.", are
// deleted before: a test uses no other names.
func Kafka(t testing.TB) []string {
	t.Helper()
	return broker(t, topLevel(t))
}

// SharedKafka is Kafka for parallel tests with names of topics and
// groups of their own, which also begin with "test.": a given
// broker is theirs together, for one turn.
func SharedKafka(t testing.TB) []string {
	t.Helper()
	if os.Getenv(EnvBrokers) == "" {
		return Kafka(t)
	}
	return broker(t, "")
}

// broker is the one that the tests of that name hold.
func broker(t testing.TB, name string) []string {
	t.Helper()
	given := os.Getenv(EnvBrokers)
	if given == "" {
		mustBeGiven(t, EnvBrokers, "kafka", "containers")
	}
	return brokers.acquire(t, name, func() (lease, error) { return open(given) }).addresses()
}

// topLevel is the name of the top-level test that a test belongs to.
func topLevel(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

// A lease is a broker that the tests of one top-level test hold.
type lease interface {
	addresses() []string
	end(t testing.TB)
}

func open(given string) (lease, error) {
	if given == "" {
		return openEmbedded()
	}
	return openGiven(strings.Split(given, ","))
}

// A register holds brokers by name: that of a top-level test, or
// none for those who share.
type register struct {
	mu    sync.Mutex
	holds map[string]*hold
}

type hold struct {
	lease   lease
	holders int
	ready   chan struct{}
	err     error
}

// brokers is shared by the tests of a package, who have nothing else in common.
var brokers = register{holds: map[string]*hold{}}

func (r *register) acquire(t testing.TB, name string, open func() (lease, error)) lease {
	t.Helper()
	h, first := r.join(name)
	if first {
		h.lease, h.err = open()
		close(h.ready)
	}
	<-h.ready
	t.Cleanup(func() { r.leave(t, name, h) })
	if h.err != nil {
		t.Fatalf("testenv: no broker for the tests: %v", h.err)
	}
	return h.lease
}

func (r *register) join(name string) (h *hold, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, found := r.holds[name]
	if !found {
		h = &hold{ready: make(chan struct{})}
		r.holds[name] = h
	}
	h.holders++
	return h, !found
}

func (r *register) leave(t testing.TB, name string, h *hold) {
	r.mu.Lock()
	h.holders--
	last := h.holders == 0
	if last {
		delete(r.holds, name)
	}
	r.mu.Unlock()
	if last && h.err == nil {
		h.lease.end(t)
	}
}

// An embeddedLease is a broker in memory, in this process.
type embeddedLease struct{ broker *kafka.Broker }

var announceEmbedded = sync.OnceFunc(func() { announce("Kafka", "embedded broker") })

func openEmbedded() (lease, error) {
	announceEmbedded()
	broker, err := kafka.Start(kafka.Config{Open: true, RefuseDropped: true, Logger: discard()})
	if err != nil {
		return nil, err
	}
	return embeddedLease{broker}, nil
}

func (l embeddedLease) addresses() []string { return []string{l.broker.Addr()} }

func (l embeddedLease) end(t testing.TB) {
	if refused := l.broker.Refused(); len(refused) > 0 {
		t.Errorf("testenv: the test used requests that Apache Kafka 4 does not serve: %s", strings.Join(refused, ", "))
	}
	if err := l.broker.Close(); err != nil {
		t.Errorf("testenv: %v", err)
	}
}
