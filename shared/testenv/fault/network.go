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
