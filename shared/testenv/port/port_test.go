package port

import (
	"errors"
	"net"
	"runtime"
	"strconv"
	"testing"

	"github.com/weirlog/weir/shared/filelock"
	"github.com/weirlog/weir/shared/testenv"
)

func TestFree(t *testing.T) {
	t.Parallel()
	port, err := Free()
	testenv.Must(t, err)
	if port < first || port > last {
		t.Errorf("port %d is not between %d and %d", port, first, last)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatalf("somebody listens there: %v", err)
	}
	defer ln.Close()
}

// A reserved port is not given again, even before anything listens on it.
func TestLentOnce(t *testing.T) {
	t.Parallel()
	port, err := Free()
	testenv.Must(t, err)
	runtime.GC() // which closes files that nothing refers to
	runtime.GC()
	if err := take(port); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("a lent port was lent again: %v", err)
	}
}

func TestTaken(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	defer ln.Close()
	if err := take(ln.Addr().(*net.TCPAddr).Port); err == nil {
		t.Error("a port was lent on which somebody listens")
	}
}
