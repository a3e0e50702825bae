package doctor

import (
	"cmp"
	"fmt"
	"path/filepath"
	"syscall"
)

// Space is the space of a file system, in bytes, and which one it is.
type Space struct{ Free, Total, Device uint64 }

func spaceOf(dir string) (Space, error) {
	var stat syscall.Statfs_t
	var folder syscall.Stat_t
	if err := cmp.Or(syscall.Statfs(dir, &stat), syscall.Stat(dir, &folder)); err != nil {
		return Space{}, err
	}
	size, device := uint64(stat.Bsize), uint64(folder.Dev) //nolint:gosec,unconvert // never negative; of another type elsewhere
	return Space{Free: stat.Bavail * size, Total: stat.Blocks * size, Device: device}, nil
}

// mounted returns the folders of the broker and the database that are
// on other file systems than the data directory.
func (e *examination) mounted() (dirs []string) {
	data, err := e.Machine.Space(e.DataDir)
	for _, name := range []string{"kafka", "postgres"} {
		dir := filepath.Join(e.DataDir, name)
		if own, missing := e.Machine.Space(dir); err == nil && missing == nil && own.Device != data.Device {
			dirs = append(dirs, dir)
		}
	}
	return dirs
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
