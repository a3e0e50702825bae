//go:build disk

package disk

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// mount mounts a file system of its own, such as with size=300m, until the test
// ends, or its process in any way.
func mount(t *testing.T, options string) (dir string) {
	t.Helper()
	dir = folder(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options+",mode=755"); err != nil {
		t.Fatalf("cannot mount a file system: %v: run this as root", err)
	}
	return dir
}

// nearlyFull starts Weir, its broker and its PostgreSQL on a file system that is
// soon full, and has room for more once the returned function was called.
func nearlyFull(t *testing.T) (in *installation, room func()) {
	t.Helper()
	dir := mount(t, "size=300m")
	ballast := filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 100<<20), 0o600))
	in = start(t, dir, nil)
	if _, err := os.Stat(in.database()); err != nil {
		t.Fatalf("PostgreSQL has another disk: %v", err)
	}
	return in, func() { must(t, os.Remove(ballast)) }
}

// A disk that runs full under load, and has room again later: every post is
// answered 200 and kept, or 500. Weir goes on by itself once there is room,
// and so does the next process.
func TestFull(t *testing.T) {
	in, room := nearlyFull(t)
	end := in.load(12, 100, 1000)
	in.awaitRefused(12)
	room()
	in.awaitAcked(2000)
	end()
	for _, problem := range in.refused {
		if problem.Status != http.StatusInternalServerError || problem.RetryAfter == 0 {
			t.Errorf("a full disk is answered %v, Retry-After %s; want 500 with Retry-After", problem, problem.RetryAfter)
			break
		}
	}
	in.verify()
	in.stop()
	in.restart()
	in.verify()
}

// A process that is killed on a full disk: the next one keeps the promise too,
// at first without any room.
func TestKilledFull(t *testing.T) {
	in, room := nearlyFull(t)
	end := in.load(12, 100, 1000)
	in.awaitRefused(12)
	in.running.Kill()
	end()
	in.launch() // it may serve, or end with an error
	testenv.Eventually(t, startLimit, func() error {
		if refused := in.post(t.Context(), in.env.APIKey, 1, 10); refused == nil && !in.running.HasEnded() {
			return errors.New("it has neither ended nor refused")
		}
		return nil
	})
	in.running.Kill()
	room()
	in.restart()
	in.verify()
}

// awaitRefused waits until so many posts were refused.
func (in *installation) awaitRefused(n int) {
	in.t.Helper()
	testenv.Eventually(in.t, startLimit, func() error {
		if _, refused := in.counts(); len(refused) < n {
			return errors.New("too few posts were refused")
		}
		return nil
	})
}

// awaitAcked waits until so many more entries were acknowledged.
func (in *installation) awaitAcked(n int) {
	in.t.Helper()
	before, _ := in.counts()
	testenv.Eventually(in.t, startLimit, func() error {
		if acked, _ := in.counts(); acked < before+n {
			return errors.New("too few entries are acknowledged")
		}
		return nil
	})
}
