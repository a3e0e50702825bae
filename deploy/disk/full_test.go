//go:build disk

package disk

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"github.com/weirlog/weir/deploy/client"
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
	testenv.Must(t, os.WriteFile(ballast, make([]byte, 100<<20), 0o600))
	in = start(t, dir, nil)
	if _, err := os.Stat(in.database()); err != nil {
		t.Fatalf("PostgreSQL has another disk: %v", err)
	}
	return in, func() { testenv.Must(t, os.Remove(ballast)) }
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
	testenv.Eventually(t, func() error {
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
	testenv.Eventually(in.t, func() error {
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
	testenv.Eventually(in.t, func() error {
		if acked, _ := in.counts(); acked < before+n {
			return errors.New("too few entries are acknowledged")
		}
		return nil
	})
}

// The broker's directory can't be written to for a while, and entries, an
// organization's project and key, and a revocation come meanwhile: what was
// acknowledged holds, at once or as soon as it can be written, also after the
// next start.
func TestUnwritable(t *testing.T) {
	in := start(t, folder(t), nil)
	revoked, err := in.api.CreateAPIKey(t.Context(), in.env.OperatorToken, in.env.Project, "prod", "to be revoked")
	testenv.Must(t, err)
	in.awaitPost(revoked.Key)
	writable := immutable(t, filepath.Join(in.dir, "kafka"))
	end := in.load(12, 10, 100)
	in.awaitRefused(12)
	if err := in.api.RevokeAPIKey(t.Context(), in.env.OperatorToken, revoked.ID, "leaked"); err != nil {
		t.Error(err)
	}
	created, err := in.api.CreateAPIKey(t.Context(), in.env.OperatorToken, in.env.Project, "prod", "new")
	if err != nil {
		t.Error(err)
	}
	writable()
	in.awaitAcked(100)
	end()
	for range 2 {
		in.awaitPost(created.Key)
		testenv.Eventually(t, func() error {
			var problem *client.Problem
			if err := in.post(t.Context(), revoked.Key, 1, 10); !errors.As(err, &problem) || problem.Status != http.StatusUnauthorized {
				return errors.New("the revoked key is not refused")
			}
			return nil
		})
		in.verify()
		in.stop()
		in.restart()
	}
}

// awaitPost waits until a key posts.
func (in *installation) awaitPost(key string) {
	in.t.Helper()
	testenv.Eventually(in.t, func() error { return in.post(in.t.Context(), key, 1, 10) })
}

// immutable makes the kernel refuse all writes below a directory, also by root
// and to open files, until the returned function is called or the test ends.
func immutable(t *testing.T, dir string) (writable func()) {
	t.Helper()
	set := func(on bool) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() && !d.Type().IsRegular() {
				return err
			}
			return setImmutable(path, on)
		})
		if err != nil {
			t.Errorf("cannot change %q: %v: run this as root, on ext4 or the like", dir, err)
		}
	}
	set(true)
	t.Cleanup(func() { set(false) })
	return func() { set(false) }
}

// From linux/fs.h.
const (
	getFlags      = 0x80086601 // FS_IOC_GETFLAGS
	putFlags      = 0x40086602 // FS_IOC_SETFLAGS
	immutableFlag = 0x10       // FS_IMMUTABLE_FL
)

func setImmutable(path string, on bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var flags int32
	if err := ioctl(file, getFlags, &flags); err != nil {
		return err
	}
	flags &^= immutableFlag
	if on {
		flags |= immutableFlag
	}
	return ioctl(file, putFlags, &flags)
}

func ioctl(file *os.File, request uintptr, flags *int32) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request, uintptr(unsafe.Pointer(flags))); errno != 0 {
		return errno
	}
	return nil
}

// A broker that refuses what it can't write is named by /readyz, until it
// can write, whether or not anything is posted then.
func TestBrokerRefuses(t *testing.T) {
	in := start(t, folder(t), nil)
	writable := immutable(t, filepath.Join(in.dir, "kafka"))
	end := in.load(1, 10, 100)
	in.awaitReadyz("broker")
	end()
	writable()
	in.awaitReadyz("")
	in.awaitPost(in.env.APIKey)
	in.verify()
	in.stop()
}
