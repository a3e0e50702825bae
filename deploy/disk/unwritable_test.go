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

// The broker's directory can't be written to for a while, and entries, an
// organization's project and key, and a revocation come meanwhile: what was
// acknowledged holds, at once or as soon as it can be written, also after the
// next start.
func TestUnwritable(t *testing.T) {
	in := start(t, folder(t), nil)
	revoked, err := in.api.CreateAPIKey(t.Context(), in.env.OperatorToken, in.env.Project, "prod", "to be revoked")
	if err != nil {
		t.Fatal(err)
	}
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
		testenv.Eventually(t, viewLimit, func() error {
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
	testenv.Eventually(in.t, viewLimit, func() error { return in.post(in.t.Context(), key, 1, 10) })
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
