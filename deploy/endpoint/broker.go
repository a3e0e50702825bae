package endpoint

import (
	"errors"
	"path/filepath"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/embedded/kafka"
)

// EmbeddedBroker returns the broker that a weir run has started in a
// data directory, and how to sign in there.
func EmbeddedBroker(dataDir string) (brokers []string, access bus.Access, err error) {
	dir := filepath.Join(dataDir, "kafka")
	address, err := kafka.Running(dir)
	if errors.Is(err, kafka.ErrNotRunning) {
		return nil, access, errors.New("WEIR_BROKERS is not set, and no weir run is at work in the data directory " + dataDir)
	}
	return []string{address}, bus.Access{User: kafka.User, PasswordFile: kafka.PasswordFile(dir), Mechanism: kafka.Mechanism}, err
}
