package kafkatest

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
)

// An embeddedLease is a broker in memory, in this process.
type embeddedLease struct{ broker *kafka.Broker }

func openEmbedded() (held, error) {
	backend.Announce("Kafka", "embedded broker")
	broker, err := kafka.Start(kafka.Config{Open: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return embeddedLease{broker}, nil
}

func (l embeddedLease) addresses() []string { return []string{l.broker.Addr()} }

// End closes the broker, and fails the test if it sent what Apache
// Kafka 4 doesn't serve.
func (l embeddedLease) End(t testing.TB) {
	if refused := l.broker.Refused(); len(refused) > 0 {
		t.Errorf("testenv: the test used requests that Apache Kafka 4 does not serve: %s", strings.Join(refused, ", "))
	}
	if err := l.broker.Close(); err != nil {
		t.Errorf("testenv: %v", err)
	}
}

// variable makes a program of tests a broker: its port, and where it
// keeps its data.
const variable = "WEIR_TEST_SERVE_BROKER"

// serveCommand starts this program once more, as a broker.
func serveCommand(port int, dir string) (*fault.Command, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &fault.Command{Line: []string{program}, Env: []string{fmt.Sprintf("%s=%d %s", variable, port, dir)}}, nil
}

// Tests of any package may need such a process, and a package has at
// most one TestMain.
func init() { //nolint:gochecknoinits // see above
	if at := os.Getenv(variable); at != "" {
		fmt.Fprintln(os.Stderr, serveBroker(at))
		os.Exit(1)
	}
}

// serveBroker returns only on an error: the process is killed.
func serveBroker(at string) error {
	number, dir, _ := strings.Cut(at, " ")
	port, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	if _, err := kafka.Start(kafka.Config{Open: true, Dir: dir, Port: port, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	select {}
}
