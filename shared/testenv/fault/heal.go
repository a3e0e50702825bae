package fault

import (
	"net/url"
	"testing"
)

// Before puts a network before the process that serves a URL, and
// returns the URL through it. Both are healed when the test ends.
func Before(t testing.TB, what, direct string, process Process) (*Server, string) {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal("testenv: the address of a server is not a URL") // it holds a password
	}
	network, err := NewNetwork(u.Host)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	server := NewServer(what+" at "+u.Host, network, process)
	HealAtEnd(t, nil, server)
	u.Host = network.Address()
	return server, u.String()
}

// HealAtEnd heals the faults when the test ends, before end, which may
// be nil. It logs the servers' logs if the test failed.
func HealAtEnd(t testing.TB, end func() error, servers ...*Server) {
	t.Cleanup(func() {
		for _, s := range servers {
			s.healAtEnd(t)
		}
		if end == nil {
			return
		}
		if err := end(); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
}

func (s *Server) healAtEnd(t testing.TB) {
	if words := s.LogTail(); t.Failed() && words != "" {
		t.Logf("%s: its log ends with\n%s", s.Name, words)
	}
	s.Network.Close()
	s.Heal(t)
	s.Network.Close()
}
