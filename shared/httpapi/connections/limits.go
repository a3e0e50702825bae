package connections

import (
	"fmt"
	"syscall"
)

// Defaults and reserves. An idle connection over TLS costs 40 KB, 47 KB
// with HTTP/2 (measured with 5,000), so that DefaultTotal of them take
// less than a fifth of 512 MB.
const (
	DefaultTotal      = 2048
	DefaultPerNetwork = 512

	reservedFiles = 512 // for the database, the broker and files; half of all if there are fewer than twice as many
)

// Limits limit a Table. Half as many may be silent: without a handshake
// or request yet.
type Limits struct {
	Total      int
	PerNetwork int // of one client network; trusted proxies are no clients
}

// Within fits the limits to the number of files that this process may
// open: 0 gets its default, reduced to that number. An explicit limit
// beyond it is an error.
func (l Limits) Within(files int) (Limits, error) {
	most := max(files/2, files-reservedFiles)
	if l.Total > most {
		return Limits{}, fmt.Errorf("cannot hold %d connections: this process may open %d files and keeps %d of them for other things; "+
			"raise its limit (ulimit -n) or set WEIR_MAX_CONNECTIONS to at most %d", l.Total, files, files-most, most)
	}
	if l.Total == 0 {
		l.Total = min(DefaultTotal, most)
	}
	if l.PerNetwork == 0 {
		l.PerNetwork = min(DefaultPerNetwork, max(1, l.Total/2))
	}
	return l, nil
}

// Files returns how many files this process may open.
func Files() (int, error) {
	var limit syscall.Rlimit // its soft limit equals the hard one since the process began: see package os
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("cannot ask how many files may be open: %w", err)
	}
	return int(min(limit.Cur, 1<<30)), nil
}

func (l Limits) silent() int           { return max(1, l.Total/2) }
func (l Limits) silentPerNetwork() int { return max(1, l.PerNetwork/2) }
