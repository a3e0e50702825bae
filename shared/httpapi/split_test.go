package httpapi

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// flaky fails once as the kernel does when a process has too many open files, then hands out one
// connection.
type flaky struct {
	net.Listener
	calls int
	conn  net.Conn
}

var errDone = errors.New("done")

func (f *flaky) Accept() (net.Conn, error) {
	f.calls++
	switch f.calls {
	case 1:
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	case 2:
		return f.conn, nil
	}
	return nil, errDone
}

// A burst of sockets that exhausts the process's files passes; the listener then goes on. Only its
// end ends it.
func TestAcceptAllOutlastsAPassingFailure(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	taken := 0
	err := acceptAll(&flaky{conn: near}, func(net.Conn) { taken++ })
	if taken != 1 || !errors.Is(err, errDone) {
		t.Errorf("%d connections taken, ended by %v; want 1, ended by the listener", taken, err)
	}
}
