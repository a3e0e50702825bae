package kafka

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

// A Cut is the end of a partition's log that Repair has moved aside.
type Cut = storage.Cut

// Repair cuts each damaged partition of a data directory at its first
// damage, so that Start takes the directory. It deletes nothing: what
// it cuts off is moved to a directory under "damaged". It does nothing
// to a sound directory, and returns ErrLocked while a broker serves it.
func Repair(dir string) (cuts []Cut, err error) {
	if _, err := os.Stat(dir); err != nil { // locking would create it
		return nil, fmt.Errorf("cannot repair the broker's data directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	cuts, err = storage.Repair(optionsOf(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)}))
	return cuts, errors.Join(err, lock.Release())
}
