package httpapi

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/weirlog/weir/shared/httpapi/connections"
)

// flaky fails once as with too many open files, then returns one connection.
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

// A burst of sockets that exhausts the process's files is survived:
// only closing ends the listener.
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

// A connection gets keep-alives after its first byte: until then it
// costs no more than accepting it.
func TestKeepAliveAfterTheFirstByte(t *testing.T) {
	listener, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	raw, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn := connections.New(connections.Config{
		Limits: connections.Limits{Total: 8, PerNetwork: 8}, Network: (&Server{}).network,
	}).Admit(raw)
	defer conn.Close()
	if keptAlive(t, raw) {
		t.Error("a silent connection is kept alive")
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if first, err := conn.Peek(); first != 'x' || err != nil || !keptAlive(t, raw) {
		t.Errorf("after %q, %v a vanished peer is not noticed", first, err)
	}
}

func keptAlive(t *testing.T, conn net.Conn) bool {
	t.Helper()
	control, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var on int
	var failed error
	err = control.Control(func(fd uintptr) {
		on, failed = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
	})
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return on != 0
}
