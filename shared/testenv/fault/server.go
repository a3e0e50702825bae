package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
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

// A Command is a Process started by a command. It always ends
// with this process.
type Command struct {
	Line   []string // program and arguments, the same at each start
	Env    []string // added to that of this process
	Dir    string   // its folder, with server.log; removed with it when this process ends
	Answer func(context.Context) error

	cmd   *exec.Cmd
	guard *exec.Cmd
	held  io.Closer
	ended chan struct{}
}

// startTime bounds how long a server may take until it answers.
const startTime = time.Minute

// guardScript waits for the end of its input, which the kernel closes
// with the process that holds it open.
const guardScript = `cat >/dev/null; kill -KILL "$1"; rm -rf "$2"`

func (c *Command) log() string { return filepath.Join(c.Dir, "server.log") }

// Start runs the command and returns when the server answers.
func (c *Command) Start() error {
	log, err := os.OpenFile(c.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c.cmd = exec.Command(c.Line[0], c.Line[1:]...)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = append(os.Environ(), c.Env...), log, log
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.watch()
	if err := c.protect(); err != nil {
		return errors.Join(err, c.Kill())
	}
	return c.await()
}

// watch notes when the process ends.
func (c *Command) watch() {
	cmd, ended := c.cmd, make(chan struct{})
	c.ended = ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the log has more than the exit code
	}()
}

func (c *Command) protect() (err error) {
	c.guard = exec.Command("/bin/sh", "-c", guardScript, "weir-test-guard", strconv.Itoa(c.cmd.Process.Pid), c.Dir)
	c.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C does not reach it before this process ends
	if c.held, err = c.guard.StdinPipe(); err != nil {
		return err
	}
	return c.guard.Start()
}

func (c *Command) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := c.Answer(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.ended:
			return fmt.Errorf("it ended at its start: %s", c.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("no answer within %s: %w: %s", startTime, err, c.LogTail())
		case <-ticker.C:
		}
	}
}

// logTail is the size of LogTail.
const logTail = 8 << 10

// LogTail is the end of the server's log.
func (c *Command) LogTail() string {
	raw, err := os.ReadFile(c.log())
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-logTail):])
}

// Pause stops the process (SIGSTOP).
func (c *Command) Pause() error { return Stop(c.cmd.Process.Pid) }

// Resume lets it go on.
func (c *Command) Resume() error { return c.cmd.Process.Signal(syscall.SIGCONT) }

// Kill sends SIGKILL.
func (c *Command) Kill() error {
	if c.guard != nil && c.guard.Process != nil {
		_ = c.guard.Process.Kill() // before the process is gone: it must not kill another one of the same number
		_ = c.guard.Wait()
		c.held.Close()
		c.guard = nil
	}
	err := c.cmd.Process.Kill()
	<-c.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Restart kills the process and starts it.
func (c *Command) Restart() error { return errors.Join(c.Kill(), c.Start()) }

// stopTime bounds how long a process may take to stop.
const stopTime = 30 * time.Second

// Stop sends SIGSTOP to a process and returns once all its threads have
// stopped: on a busy machine one may still answer. Where the system
// does not show threads, it only sends the signal.
func Stop(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for timeout := time.After(stopTime); ; {
		stopped, err := isStopped(pid)
		if err != nil || stopped {
			return err
		}
		select {
		case <-ticker.C:
		case <-timeout:
			return fmt.Errorf("process %d does not stop", pid)
		}
	}
}

// isStopped reports whether no thread of a process runs.
func isStopped(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread) // 4711 (kafka) T …
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		if _, state, _ := bytes.Cut(stat, []byte(") ")); !bytes.HasPrefix(state, []byte("T")) {
			return false, nil
		}
	}
	return true, nil
}

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

// turns lets one top-level test at a time inject faults: another would
// not expect what happens to its servers.
var turns struct {
	mu      sync.Mutex
	holders backend.Register[turn]
}

type turn struct{}

// End lets the next test inject faults.
func (turn) End(testing.TB) { turns.mu.Unlock() }

// Turn waits until no other top-level test of the package injects
// faults. The turn ends with the test.
func Turn(t testing.TB) {
	t.Helper()
	turns.holders.Acquire(t, backend.TopLevel(t), func() (turn, error) {
		turns.mu.Lock()
		return turn{}, nil
	})
}

// TryEach injects each fault into the server and checks its effect: ask
// fails while it lasts, and works again after it.
func (s *Server) TryEach(t testing.TB, ask func(context.Context) error) {
	t.Helper()
	works := func() {
		t.Helper()
		testenv.Eventually(t, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return ask(ctx)
		})
	}
	works()
	for name, do := range map[string]func(){
		"paused":     func() { s.Pause(t) },
		"killed":     func() { s.Kill(t) },
		"cut":        s.Cut,
		"black hole": s.BlackHole,
	} {
		do()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := ask(ctx); err == nil {
			t.Errorf("%s answers while %s", s.Name, name)
		}
		cancel()
		s.Heal(t)
		works()
	}
	s.Restart(t)
	works()
	s.Delay(20 * time.Millisecond)
	begin := time.Now()
	works()
	if took := time.Since(begin); took < 40*time.Millisecond {
		t.Errorf("%s answered within %s, over a network that takes 20 ms each way", s.Name, took)
	}
}
