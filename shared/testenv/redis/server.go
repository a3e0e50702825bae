package redis

import (
	"bufio"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// A Server runs commands one after the other, in the order of its journal.
type Server struct {
	now func() time.Time

	mu      sync.Mutex
	memory  *miniredis.Miniredis
	journal *journal
	clients int // number so far
}

// Open reads the journal of a folder. Only one process may have it open.
func Open(dir string, now func() time.Time) (*Server, error) {
	s := &Server{now: now, memory: miniredis.NewMiniRedis()}
	s.memory.Seed(1) // repeats random choices
	s.memory.ClockTTL(true)
	started, err := s.memory.Dial() // without a listener of its own
	if err != nil {
		return nil, err
	}
	started.Close()
	old := map[int]*server.Peer{}
	s.journal, err = openJournal(dir, func(e entry) { s.again(e, old) })
	return s, err
}

// again runs a command of an earlier process.
func (s *Server) again(e entry, clients map[int]*server.Peer) {
	if clients[e.Client] == nil {
		clients[e.Client] = server.NewPeer(bufio.NewWriter(io.Discard))
		s.clients = max(s.clients, e.Client)
	}
	s.memory.SetTime(e.time())
	s.memory.Server().Dispatch(clients[e.Client], e.words())
}

// Serve answers clients until the listener is closed.
func (s *Server) Serve(ln net.Listener) error {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		go s.answer(conn)
	}
}

func (s *Server) answer(conn net.Conn) {
	defer conn.Close()
	s.mu.Lock()
	s.clients++
	client := s.clients
	s.mu.Unlock()
	peer, in := server.NewPeer(bufio.NewWriter(conn)), bufio.NewReader(conn)
	defer s.leave(peer)
	for !peer.Closed() {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		if len(command) > 0 {
			s.do(client, peer, command)
			peer.Flush()
		}
	}
}

// leave ends a client's transaction, subscriptions and other state.
func (s *Server) leave(peer *server.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, command := range []string{"UNSUBSCRIBE", "PUNSUBSCRIBE"} {
		s.memory.Server().Dispatch(peer, []string{command})
	}
}

func (s *Server) do(client int, peer *server.Peer, command []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if blocks(command) {
		peer.WriteError("ERR the tests' own Redis does not serve " + strings.ToUpper(command[0]) + " that blocks: install redis-server or valkey-server")
		return
	}
	now := s.now()
	if s.changes(command[0]) {
		if err := s.journal.append(now, client, command); err != nil {
			peer.WriteError("ERR cannot keep it: " + err.Error())
			return
		}
	}
	s.memory.SetTime(now)
	s.memory.Server().Dispatch(peer, command)
}

// changes reports whether a command may change later answers. A random
// choice changes later choices.
func (s *Server) changes(name string) bool {
	return !s.memory.IsReadOnlyCommand(name) || strings.Contains(strings.ToUpper(name), "RAND")
}

var blocking = []string{"BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN", "WAIT"}

// blocks reports whether a command may wait for another client, and so
// would block all.
func blocks(command []string) bool {
	name := strings.ToUpper(command[0])
	if name == "XREAD" || name == "XREADGROUP" {
		return slices.ContainsFunc(command[1:], func(word string) bool { return strings.EqualFold(word, "BLOCK") })
	}
	return slices.Contains(blocking, name)
}
