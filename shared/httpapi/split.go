package httpapi

import (
	"errors"
	"net"
	"sync"
	"time"
)

// sniffTimeout is how long a connection may stay silent before its first byte.
const sniffTimeout = 10 * time.Second

// tlsHandshake is the first byte of every TLS connection (RFC 8446, 5.1: content type handshake).
const tlsHandshake = 0x16

// split makes two listeners of one: connections that begin a TLS handshake, and all others.
func split(listener net.Listener, clock func() time.Time) (secured, plain net.Listener) {
	s, p := newBranch(listener), newBranch(listener)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				s.fail(err)
				p.fail(err)
				return
			}
			go sniff(conn, clock, s, p)
		}
	}()
	return s, p
}

// sniff reads the first byte of conn and hands it to the branch that it belongs to.
func sniff(conn net.Conn, clock func() time.Time, secured, plain *branch) {
	var first [1]byte
	_ = conn.SetReadDeadline(clock().Add(sniffTimeout))
	if _, err := conn.Read(first[:]); err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	target := plain
	if first[0] == tlsHandshake {
		target = secured
	}
	target.hand(&sniffed{Conn: conn, first: first[0]})
}

// A sniffed connection gives back the byte that was read ahead.
type sniffed struct {
	net.Conn
	first byte
	given bool
}

func (c *sniffed) Read(p []byte) (int, error) {
	if c.given || len(p) == 0 {
		return c.Conn.Read(p)
	}
	c.given = true
	p[0] = c.first
	return 1, nil
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
