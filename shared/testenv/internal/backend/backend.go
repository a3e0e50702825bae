package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

// StartTime bounds a server's start, downloads included.
const StartTime = 3 * time.Minute

// Chosen is the run's kind of servers: machine, kafka (Apache Kafka,
// the rest from the machine), containers.
func Chosen() string { return cmp.Or(os.Getenv(testenv.EnvBackend), "machine") }

// ErrUnknown means that Chosen is none of them.
func ErrUnknown() error {
	return errors.New(testenv.EnvBackend + " is " + Chosen() + ": it can be machine, kafka or containers")
}

// Given is a variable's value, unless a server can be had in another way.
func Given(variable string) string {
	if os.Getenv(testenv.EnvBackend) != "" {
		return ""
	}
	return os.Getenv(variable)
}

// MustBeGiven fails a test without a server from the command that
// starts them: one per package would take longer than the tests.
func MustBeGiven(t testing.TB, variable string, elsewhere ...string) {
	t.Helper()
	if chosen := Chosen(); slices.Contains(elsewhere, chosen) {
		t.Fatalf("testenv: %s=%s, but %s is not set: run the tests through `make test-kafka`, "+
			"or `go run ./shared/testenv/cmd/backends -backend=kafka -- go test …`", testenv.EnvBackend, chosen, variable)
	}
}

var announced sync.Map

// Announce logs a test's server, once per package and server.
func Announce(what, where string) {
	if _, before := announced.LoadOrStore(what+where, true); !before {
		fmt.Fprintf(os.Stderr, "testenv: %s: %s\n", what, where)
	}
}

// pause between two tries of Retry.
const pause = 50 * time.Millisecond

// Retry tries until it works, and returns the last error when ctx ends.
func Retry(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
