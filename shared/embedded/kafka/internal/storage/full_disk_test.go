//go:build disk

package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
	"github.com/weirlog/weir/shared/testenv"
)

// A file system that is full in the middle of a batch: what was
// acknowledged stays, and all goes on once there is room. Root only.
func TestFullFileSystem(t *testing.T) {
	for kind, settings := range kinds {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=755"); err != nil {
				t.Fatalf("cannot mount a file system: %v: run this as root", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
			ballast := filepath.Join(dir, "ballast")
			testenv.Must(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o600))
			data := filepath.Join(dir, "data")
			testenv.Must(t, os.Mkdir(data, 0o700))
			s := open(t, disk.OS{}, data)
			p := create(t, s, "full", settings)
			acked := fill(t, p, 0)
			if refused := fill(t, p, acked); refused != acked {
				t.Errorf("it acknowledged %d more", refused-acked)
			}
			isWhole(t, partition(t, open(t, disk.OS{}, data), "full"), acked) // as after a kill
			testenv.Must(t, os.Remove(ballast))
			put(t, p, fmt.Sprint(acked), "after")
			isWhole(t, p, acked+1)
			isWhole(t, partition(t, open(t, disk.OS{}, data), "full"), acked+1)
		})
	}
}

// fill appends until the disk is full, and returns how many records are
// acknowledged.
func fill(t *testing.T, p *Partition, from int) int {
	t.Helper()
	for n := from; ; n++ {
		err := tryPut(p, fmt.Sprint(n), strings.Repeat("x", 3000))
		if errors.Is(err, ErrNotWritten) && errors.Is(err, syscall.ENOSPC) {
			return n
		}
		testenv.Must(t, err)
	}
}

// isWhole checks that a log has so many records, and all of them.
func isWhole(t *testing.T, p *Partition, records int) {
	t.Helper()
	got := content(t, p)
	for n := range records {
		if !strings.Contains(got, fmt.Sprintf("%d:%d=", n, n)) {
			t.Errorf("record %d of %d is lost", n, records)
		}
	}
	if _, end := p.Bounds(); end != int64(records) {
		t.Errorf("the log ends at %d, want %d", end, records)
	}
}
