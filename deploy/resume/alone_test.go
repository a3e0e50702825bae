package resume

import (
	"errors"
	"io"
	"os"
	"testing"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// Ingest publishes without a lease: only its groups show that a process runs.
func TestAlone(t *testing.T) {
	i, steps := &installation{brokers: kafkatest.Brokers(t)}, []Step{{Outcomes: []Outcome{{Position: Position{Group: contract.GroupLogStore}}}}}
	if err := i.refuseOthers(t.Context(), steps); err != nil {
		t.Errorf("nobody runs: %v", err)
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{ID: contract.GroupLogStore, Brokers: i.brokers, Topics: []string{contract.TopicLogs}})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	if _, err := group.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.refuseOthers(t.Context(), steps); !errors.Is(err, errConsuming) {
		t.Errorf("a process runs: %v", err)
	}
}

// A mistyped directory is refused, and nothing is made in it.
func TestNoDataDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := Run(t.Context(), Config{Source: backup.Source{DataDir: dir}}, io.Discard); err == nil {
		t.Error("a directory that no weir run has used is resumed")
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("it holds %v, %v", made, err)
	}
}
