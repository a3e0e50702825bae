package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/group"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/scram"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

// Limits of a server.
const (
	maxConnections  = 1000
	maxRefusals     = 100       // remembered
	requestsInQueue = 64        // of a connection, read and not answered
	memoryBytes     = 256 << 20 // of requests that are being read
)

// OffsetsTopic has the offsets that groups have committed. Clients do
// not see it.
const OffsetsTopic = "__consumer_offsets"

// A Config is what a server serves.
type Config struct {
	Store  *storage.Store
	Groups *group.Coordinator
	Secret *scram.Secret    // nil: all clients are let in
	Now    func() time.Time // the machine's clock
	Logger *slog.Logger
}

// A Server answers clients.
type Server struct {
	Config

	address net.TCPAddr
	ctx     context.Context
	cancel  context.CancelFunc
	memory  *budget

	mu          sync.Mutex
	connections map[*conn]struct{} // bounded by maxConnections
	refused     []string
	wait        sync.WaitGroup
}

func New(config Config) *Server {
	s := &Server{Config: config, connections: map[*conn]struct{}{}, memory: newBudget(memoryBytes)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve accepts clients until the listener is closed. Clients are told
// to connect to its address.
func (s *Server) Serve(listener net.Listener) {
	if address, isTCP := listener.Addr().(*net.TCPAddr); isTCP {
		s.address = *address
	}
	s.wait.Go(func() {
		for {
			socket, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				s.Logger.Warn("embedded broker: cannot accept a client", "error", err)
				if !s.pause() {
					return
				}
				continue
			}
			s.admit(socket)
		}
	})
}

// pause lets clients go after an error such as too many open files. It
// returns false once the server is closed.
func (s *Server) pause() bool {
	select {
	case <-s.ctx.Done():
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}

func (s *Server) admit(socket net.Conn) {
	c := newConn(s, socket)
	s.mu.Lock()
	full := len(s.connections) >= maxConnections
	if !full && s.ctx.Err() == nil {
		s.connections[c] = struct{}{}
		s.wait.Go(c.run)
	}
	s.mu.Unlock()
	if full {
		s.Logger.Warn("embedded broker: a client was turned away, there are too many", "client", socket.RemoteAddr(), "connections", maxConnections)
	}
	if full || s.ctx.Err() != nil {
		socket.Close()
	}
}

func (s *Server) gone(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c)
}

// Close ends all connections. What waits is answered first, if it can be.
func (s *Server) Close() {
	s.cancel()
	s.Groups.Close()
	s.mu.Lock()
	for c := range s.connections {
		c.socket.Close()
	}
	s.mu.Unlock()
	s.wait.Wait()
}

// Refused lists the requests that are not served, in order, such as
// "JoinGroup v1".
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

func (s *Server) remember(request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) < maxRefusals {
		s.refused = append(s.refused, request)
	}
}

// topic returns a topic that clients see; nil if there is none.
func (s *Server) topic(name string) *storage.Topic {
	if name == OffsetsTopic {
		return nil
	}
	return s.Store.Topic(name)
}
