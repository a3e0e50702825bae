package fault

import (
	"io"
	"net"
	"sync"
	"time"
)

// A link is one connection through a network.
type link struct {
	network *Network
	client  net.Conn
	over    chan struct{} // closed when it is broken

	mu     sync.Mutex
	server net.Conn
	broken bool
}

// A chunk is what one read returned, and its time.
type chunk struct {
	bytes []byte
	at    time.Time
}

const (
	chunkBytes = 32 << 10
	underWay   = 32 // chunks that a network holds for one direction of a connection
)

// carry copies both directions until both have ended or the link is broken.
func (l *link) carry(server net.Conn) {
	if !l.complete(server) {
		return
	}
	requests, answers := l.network.edit(l.client, server)
	var both sync.WaitGroup
	both.Go(func() { l.pump(server, requests) })
	both.Go(func() { l.pump(l.client, answers) })
	both.Wait()
	l.reset() // frees what is left; after an orderly end it has no effect
}

// complete notes the server's end, unless the link was broken meanwhile.
func (l *link) complete(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		abort(server)
		return false
	}
	l.server = server
	return true
}

// pump copies one direction.
func (l *link) pump(to net.Conn, from io.Reader) {
	chunks := make(chan chunk, underWay)
	var reading sync.WaitGroup
	reading.Go(func() { l.read(from, chunks) })
	for c := range chunks {
		if l.deliver(to, c) != nil {
			l.reset()
		}
	}
	reading.Wait()
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // fails only where the connection is gone
	}
}

func (l *link) read(from io.Reader, chunks chan<- chunk) {
	defer close(chunks)
	for {
		buf := make([]byte, chunkBytes)
		n, err := from.Read(buf)
		if n > 0 {
			chunks <- chunk{buf[:n], time.Now()} //nolint:forbidigo // a network delays in real time
		}
		if err != nil {
			return
		}
	}
}

// deliver writes a chunk as the state of the network allows.
func (l *link) deliver(to net.Conn, c chunk) error {
	for rest := c.bytes; len(rest) > 0; {
		piece, err := l.allowed(c, len(rest))
		if err != nil {
			return err
		}
		if _, err := to.Write(rest[:piece]); err != nil {
			return err
		}
		rest = rest[piece:]
	}
	return nil
}

// allowed waits as needed, and returns how much of a chunk may be written now.
func (l *link) allowed(c chunk, rest int) (piece int, err error) {
	s, changed := l.network.now()
	switch left := time.Until(c.at.Add(s.delay)); { //nolint:forbidigo // a network delays in real time
	case s.hole:
		_, err = l.pause(changed, nil)
		return 0, err
	case left > 0:
		_, err = l.pause(changed, time.After(left))
		return 0, err
	case s.pace > 0:
		piece = min(rest, max(1, s.pace/10))
		due, err := l.pause(changed, time.After(time.Duration(piece)*time.Second/time.Duration(s.pace)))
		if !due {
			piece = 0
		}
		return piece, err
	}
	return rest, nil
}

// pause waits, and reports whether the time passed before the state changed.
func (l *link) pause(changed <-chan struct{}, wait <-chan time.Time) (due bool, err error) {
	select {
	case <-l.over:
		return false, errOver
	case <-changed:
		return false, nil
	case <-wait:
		return true, nil
	}
}

// reset breaks the link; ends with an open connection see a reset.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.broken {
		l.broken = true
		close(l.over)
	}
	abort(l.client)
	if l.server != nil {
		abort(l.server)
	}
}

// abort closes a connection with a reset instead of an orderly end.
func abort(conn net.Conn) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetLinger(0) // fails only where it is closed already
	}
	conn.Close()
}
