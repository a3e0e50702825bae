package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A Network is a proxy between one server and its clients, which connect to
// its address instead of the server's. Without a fault it passes everything;
// faults add up until Heal. Its methods are safe for concurrent use.
//
// No bytes that a server acknowledged to TCP are lost from the middle of a
// stream: as in a real network, they come late, or the connection breaks.
type Network struct {
	address string // where clients connect
	server  string // where the server listens
	edit    Editor

	mu       sync.Mutex
	listener net.Listener
	state    state
	changed  chan struct{} // closed at the next change of state
	links    map[*link]struct{}
	closed   bool
	running  sync.WaitGroup
}

// state is what a network does to the bytes that it carries.
type state struct {
	hole  bool          // none arrives
	delay time.Duration // each way
	pace  int           // bytes per second of a connection, each way; 0 means all at once
}

// An Editor sees the streams of each connection and may replace them.
type Editor func(clients, server net.Conn) (requests, answers io.Reader)

func unedited(clients, server net.Conn) (requests, answers io.Reader) { return clients, server }

// NewNetwork puts a network before the server at an address, host:port.
func NewNetwork(server string) (*Network, error) { return NewEditedNetwork(server, unedited) }

// NewEditedNetwork is NewNetwork with streams that edit replaces.
func NewEditedNetwork(server string, edit Editor) (*Network, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &Network{
		address: listener.Addr().String(), server: server, edit: edit,
		changed: make(chan struct{}), links: map[*link]struct{}{},
	}
	n.serve(listener)
	return n, nil
}

// Address for clients, host:port. It never changes.
func (n *Network) Address() string { return n.address }

func (n *Network) serve(listener net.Listener) {
	n.listener = listener
	n.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			n.running.Go(func() { n.connect(client) })
		}
	})
}

// dialTime bounds how long the server may take to accept a connection.
const dialTime = 10 * time.Second

// connect carries one connection until it ends. It closes a client's
// connection if the server can't be reached.
func (n *Network) connect(client net.Conn) {
	l := &link{network: n, client: client, over: make(chan struct{})}
	if !n.join(l) {
		l.reset()
		return
	}
	defer n.leave(l)
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.server)
	if err != nil {
		l.reset()
		return
	}
	l.carry(server)
}

func (n *Network) join(l *link) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listener == nil {
		return false // accepted a moment before the cut
	}
	n.links[l] = struct{}{}
	return true
}

func (n *Network) leave(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.links, l)
}

// Cut resets all connections and refuses new ones.
func (n *Network) Cut() {
	n.mu.Lock()
	if n.listener != nil {
		n.listener.Close()
		n.listener = nil
	}
	n.mu.Unlock()
	n.Reset()
}

// Delay delays every byte by so long, each way.
func (n *Network) Delay(d time.Duration) { n.set(func(s *state) { s.delay = d }) }

// BlackHole passes nothing: connections stay open, new ones are
// accepted, and nothing arrives. What was sent meanwhile arrives after
// Heal, unless the sender has given up.
func (n *Network) BlackHole() { n.set(func(s *state) { s.hole = true }) }

// Trickle passes so many bytes per second, in each connection and each way.
func (n *Network) Trickle(bytesPerSecond int) { n.set(func(s *state) { s.pace = bytesPerSecond }) }

// Reset breaks all open connections, with a TCP reset towards both ends.
func (n *Network) Reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.links {
		l.reset()
	}
}

// Heal ends all faults. Broken connections stay broken.
func (n *Network) Heal() error {
	n.set(func(s *state) { *s = state{} })
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listener != nil || n.closed {
		return nil
	}
	listener, err := net.Listen("tcp", n.address)
	if err != nil {
		return fmt.Errorf("the network before %s cannot be healed: %w", n.server, err)
	}
	n.serve(listener)
	return nil
}

// Close breaks all connections and ends the network.
func (n *Network) Close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.Cut()
	n.running.Wait()
}

func (n *Network) set(change func(*state)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.state)
	close(n.changed)
	n.changed = make(chan struct{})
}

// now returns the state and the channel that its next change closes.
func (n *Network) now() (state, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state, n.changed
}

// errOver ends the copying of a broken connection.
var errOver = errors.New("the connection was broken")

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
			chunks <- chunk{buf[:n], time.Now()}
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
	switch left := time.Until(c.at.Add(s.delay)); {
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
