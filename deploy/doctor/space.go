package doctor

import (
	"fmt"
	"syscall"
)

// Space is the space of a file system, in bytes.
type Space struct{ Free, Total uint64 }

func spaceOf(dir string) (Space, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return Space{}, err
	}
	size := uint64(stat.Bsize) //nolint:gosec // never negative
	return Space{Free: stat.Bavail * size, Total: stat.Blocks * size}, nil
}

// Shares of a file system that should be free, in percent.
const (
	warnFreeSpace = 15
	failFreeSpace = 5
)

// space checks the file system of a directory.
func (e *examination) space(dir string) {
	space, err := e.Machine.Space(dir)
	if err != nil {
		e.report.add(Fail, "disk", dir, err.Error(), "Make the directory, or name another one: its service keeps its data there.")
		return
	}
	free := 100 * space.Free / max(1, space.Total)
	seen := fmt.Sprintf("%d%% of %.1f GB are free", free, float64(space.Total)/1e9)
	fix := "Make room, or move the directory to a larger file system: a full one stops what writes to it."
	switch {
	case free < failFreeSpace:
		e.report.add(Fail, "disk", dir, seen, fix)
	case free < warnFreeSpace:
		e.report.add(Warn, "disk", dir, seen, fix)
	default:
		e.report.add(OK, "disk", dir, seen, "")
	}
}
