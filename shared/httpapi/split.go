package httpapi

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/httpapi/connections"
)

// split makes two listeners of one, for HTTP/1 and for HTTP/2, of the
// connections that table admits and open returns.
func split(listener net.Listener, table *connections.Table, open func(*connections.Conn) (link, error)) (http1, http2 net.Listener) {
	one, two := newBranch(listener), newBranch(listener)
	begin := func(conn *connections.Conn) {
		opened, err := open(conn)
		if err != nil {
			_ = conn.Close()
			return
		}
		if _, ok := opened.(*linkHTTP2); ok {
			two.hand(opened)
			return
		}
		one.hand(opened)
	}
	admit := func(conn net.Conn) {
		if admitted := table.Admit(conn); admitted != nil {
			go begin(admitted)
		}
	}
	for range runtime.GOMAXPROCS(0) { // what one goroutine can't take waits in the kernel's queue, and every newcomer behind it
		go func() {
			err := acceptAll(listener, admit)
			one.fail(err)
			two.fail(err)
		}()
	}
	return one, two
}

// acceptAll accepts connections until the listener is closed. Like
// net/http it retries after a transient failure, such as too many open
// files: one burst of sockets must not end the service.
func acceptAll(listener net.Listener, take func(net.Conn)) error {
	for pause := time.Duration(0); ; {
		conn, err := listener.Accept()
		if err == nil {
			pause = 0
			take(conn)
			continue
		}
		var passing interface{ Temporary() bool }
		if !errors.As(err, &passing) || !passing.Temporary() {
			return err
		}
		pause = min(max(5*time.Millisecond, 2*pause), time.Second)
		time.Sleep(pause)
	}
}

// A branch is the listener of one kind of connection.
type branch struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	err    error
}

func newBranch(listener net.Listener) *branch {
	return &branch{Listener: listener, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (b *branch) hand(conn net.Conn) {
	select {
	case b.conns <- conn:
	case <-b.closed:
		_ = conn.Close()
	}
}

func (b *branch) fail(err error) {
	b.once.Do(func() {
		b.err = err
		close(b.closed)
	})
}

// Accept waits for the next connection of this kind.
func (b *branch) Accept() (net.Conn, error) {
	select {
	case conn := <-b.conns:
		return conn, nil
	case <-b.closed:
		return nil, b.err
	}
}

// Close closes the listener under both branches.
func (b *branch) Close() error {
	b.fail(net.ErrClosed)
	if err := b.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
