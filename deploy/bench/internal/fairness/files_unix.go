//go:build unix

package fairness

import (
	"fmt"
	"syscall"
)

// openFiles returns how many files this process may open.
func openFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("cannot read how many files may be open: %w", err)
	}
	return int(min(uint64(limit.Cur), 1<<20)), nil //nolint:gosec,unconvert // signed on some systems
}
