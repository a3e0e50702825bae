package kafkatest

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
	"github.com/weirlog/weir/shared/testenv/internal/serve"
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

// aBroker names the process of an embedded broker.
const aBroker = "broker"

func init() { serve.As(aBroker, serveBroker) } //nolint:gochecknoinits // see serve.As

// serveBroker returns only on an error: the process is killed.
func serveBroker(dir string, port int) error {
	if _, err := kafka.Start(kafka.Config{Open: true, Dir: dir, Port: port, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	select {}
}
