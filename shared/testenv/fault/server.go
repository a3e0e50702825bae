package fault

import (
	"errors"
	"fmt"
	"testing"
)

// A Process is a server that can be stopped and started. Each method
// returns when it is done: after Start the server answers.
type Process interface {
	Pause() error   // SIGSTOP: it keeps its connections and answers nothing
	Resume() error  // SIGCONT
	Kill() error    // SIGKILL
	Start() error   // after Kill, on what the dead one has left
	Restart() error // as fast as it goes: PostgreSQL by an immediate shutdown, others by Kill and Start
}

// A Server is one server of a backend, with the network before it. Its
// methods fail the test when they fail.
type Server struct {
	*Network
	Name    string
	process Process
	paused  bool
	killed  bool
}

// NewServer is a server whose process is process.
func NewServer(name string, n *Network, process Process) *Server {
	return &Server{Network: n, Name: name, process: process}
}

// LogTail is the end of the server's log; "" for a given server.
func (s *Server) LogTail() string {
	if writer, ok := s.process.(interface{ LogTail() string }); ok {
		return writer.LogTail()
	}
	return ""
}

// Given is the process of an external server: only its network can have
// faults. By is the variable that names it.
func Given(by string) Process { return given(by) }

type given string

// ErrGiven means that a fault needs a server of the test's own.
var ErrGiven = errors.New("the server is not ours")

func (g given) refuse() error {
	return fmt.Errorf("%w: it was given by %s, so that only its network can be disturbed; for this test let the tests start the server: "+
		"unset %s, or use `make test-faults`", ErrGiven, string(g), string(g))
}
func (g given) Pause() error   { return g.refuse() }
func (g given) Resume() error  { return g.refuse() }
func (g given) Kill() error    { return g.refuse() }
func (g given) Start() error   { return g.refuse() }
func (g given) Restart() error { return g.refuse() }

func (s *Server) must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("cannot %s %s: %v", what, s.Name, err)
	}
}

// Pause stops the process (SIGSTOP): connections stay open, nothing is answered.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.must(t, "pause", s.process.Pause())
	s.paused = true
}

// Resume continues a paused process.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.must(t, "resume", s.process.Resume())
	s.paused = false
}

// Kill sends SIGKILL.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.must(t, "kill", s.process.Kill())
	s.killed, s.paused = true, false
}

// Start starts a killed server and returns when it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.must(t, "start", s.process.Start())
	s.killed = false
}

// Restart stops the server at once and starts it again; it returns
// when it answers.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.must(t, "restart", s.process.Restart())
	s.killed, s.paused = false, false
}

// Replace starts an empty server in place of a killed one, and returns
// when it answers: only nodes of Apache Kafka support it.
func (s *Server) Replace(t testing.TB) {
	t.Helper()
	replaced, able := s.process.(interface{ Replace() error })
	if !able {
		t.Fatalf("cannot replace %s: only a node of Apache Kafka can be", s.Name)
	}
	s.must(t, "replace", replaced.Replace())
	s.killed = false
}

// Heal ends all faults: those of the network, a pause and a death.
func (s *Server) Heal(t testing.TB) {
	t.Helper()
	if s.paused {
		s.Resume(t)
	}
	if s.killed {
		s.Start(t)
	}
	s.must(t, "heal the network of", s.Network.Heal())
}
