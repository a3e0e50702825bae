package kafkatest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
	"github.com/weirlog/weir/shared/testenv/internal/lease"
)

// Brokers gives the test a broker without topics and returns its addresses.
//
// A top-level test and its subtests share one broker while any of them
// that asked for it runs; other tests never see it. An embedded broker
// is the test's own; it refuses what Apache Kafka 4 no longer serves,
// and fails the test that tried. The tests of all packages take turns
// on a given broker, as the contract fixes the names of topics. Before
// each turn, the topics and groups of the contract, and those whose
// names begin with "test.", are deleted: tests use no other names.
func Brokers(t testing.TB) []string {
	t.Helper()
	return broker(t, lease.TopLevel(t))
}

// Shared is Brokers for parallel tests with their own names of topics and
// groups, which also begin with "test.": they share one turn on a given broker.
func Shared(t testing.TB) []string {
	t.Helper()
	if os.Getenv(testenv.EnvBrokers) == "" {
		return Brokers(t)
	}
	return broker(t, "")
}

// Parallel lets the test run in parallel if it will have a broker of its
// own. Tests that wait for their turn on a given broker would fill the
// slots that the parallel subtests of its holder wait for.
func Parallel(t *testing.T) {
	t.Helper()
	if os.Getenv(testenv.EnvBrokers) == "" {
		t.Parallel()
	}
}

// broker returns the broker of the tests of that name.
func broker(t testing.TB, name string) []string {
	t.Helper()
	given := os.Getenv(testenv.EnvBrokers)
	if given == "" {
		backend.MustBeGiven(t, testenv.EnvBrokers, "kafka", "containers")
	}
	return brokers.Acquire(t, name, func() (held, error) { return open(given) }).addresses()
}

// held is a broker that the tests of one top-level test hold.
type held interface {
	lease.Lease
	addresses() []string
}

// brokers of this package's tests.
var brokers lease.Register[held]

func open(given string) (broker held, err error) {
	if given == "" {
		broker, err = openEmbedded()
	} else {
		broker, err = openGiven(strings.Split(given, ","))
	}
	if err != nil {
		err = fmt.Errorf("no broker for the tests: %w", err)
	}
	return broker, err
}
