package postgres

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/testenv"
)

// supervised starts a server in dir and supervises it until the test ends.
func supervised(t *testing.T, home string) (s *Server, ended <-chan error) {
	t.Helper()
	s = start(t, Config{Dir: home})
	ctx, cancel := context.WithCancel(context.Background())
	running := make(chan error, 1)
	go func() { running <- s.supervise(ctx, time.Now, restarts{pause: time.Millisecond}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-running; err != nil {
			t.Error(err)
		}
		stop(t, s)
	})
	return s, running
}

// killMain kills the main process alone, as the kernel does that is out of memory.
func killMain(t *testing.T, s *Server) {
	t.Helper()
	file, found := s.cluster.readPid()
	if !found {
		t.Fatal("it does not run")
	}
	signal(t, file.pid, syscall.SIGKILL)
	for s.cluster.owns(file.pid) {
		lifecycle.Pause(t.Context(), time.Millisecond)
	}
}

// connect connects once the server answers again.
func connect(t *testing.T, s *Server) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	for ; err != nil && ctx.Err() == nil; conn, err = pgx.Connect(ctx, s.URL()) {
		lifecycle.Pause(ctx, 10*time.Millisecond)
	}
	testenv.Must(t, err)
	return conn
}

// A server whose main process is killed is started again, at the same
// address, while connections were at work, and has every commit.
func TestKilledServerIsStartedAgain(t *testing.T) {
	t.Parallel()
	s, _ := supervised(t, made(t))
	create(t, s.URL())
	committed := 0
	for killed := range mostRestarts {
		conn := connect(t, s)
		for range 10 {
			if _, err := conn.Exec(t.Context(), "INSERT INTO kept VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			committed++
		}
		killMain(t, s)
		_ = conn.Close(t.Context()) // it is broken, or about to be
		connect(t, s).Close(t.Context())
		awaitRestarts(t, s, killed+1)
	}
	if n := query[int](t, s.URL(), "SELECT count(*) FROM kept"); n != committed {
		t.Errorf("%d rows of %d", n, committed)
	}
}

// awaitRestarts waits until so many starts have returned: a server that
// is killed before its start has returned counts as one that didn't start.
func awaitRestarts(t *testing.T, s *Server, want int) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if n := testutil.ToFloat64(s.restarts); n != float64(want) {
			return fmt.Errorf("%v restarts, want %d", n, want)
		}
		return nil
	})
}

// A process that a killed server leaves, and that does not notice, is killed.
func TestOrphansThatDoNotEndAreKilled(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Dir: made(t)})
	defer stop(t, s)
	s.cluster.patience = time.Millisecond
	other := start(t, Config{Dir: made(t)})
	defer stop(t, other)
	orphan := query[int](t, s.AdminURL(), "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
	signal(t, orphan, syscall.SIGSTOP)
	killMain(t, s)
	testenv.Must(t, s.Start())
	if isPostgres(orphan) {
		t.Error("the orphan lives")
	}
	query[int](t, s.URL(), "SELECT 1")
	query[int](t, other.URL(), "SELECT 1") // another server's processes live
}

// A server that can't start is given up after so many attempts, by one
// line that says why and where to look.
func TestServerThatKeepsEndingIsGivenUp(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Dir: made(t)})
	var log lines
	s.cluster.logger = slog.New(slog.NewTextHandler(&log, nil))
	testenv.Must(t, os.WriteFile(filepath.Join(s.cluster.home.data(), "postgresql.conf"), []byte("= spoilt"), 0o600))
	killMain(t, s)
	err := s.supervise(t.Context(), time.Now, restarts{pause: time.Millisecond})
	if !errors.Is(err, ErrKeepsEnding) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "contains errors") || !strings.Contains(err.Error(), s.LogFile()) {
		t.Errorf("got %v, want one line that names the fault and the log", err)
	}
	if n := strings.Count(log.String(), "is started again"); n != mostRestarts {
		t.Errorf("it was started again %d times, want %d:\n%s", n, mostRestarts, log.String())
	}
	stop(t, s)
}

// lines are written and read concurrently.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Restarts are paced and bounded, within a window that moves.
func TestRestartsAreBounded(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	r := restarts{pause: time.Second}
	for i, step := range []struct {
		after, pause time.Duration
		refused      bool
	}{
		{0, 0, false}, {time.Minute, time.Second, false}, {time.Minute, 2 * time.Second, false}, {time.Minute, 4 * time.Second, false},
		{time.Minute, 8 * time.Second, false}, {time.Minute, 0, true}, {restartWindow - 5*time.Minute, 8 * time.Second, false},
		{restartWindow, 0, false},
	} {
		now = now.Add(step.after)
		if pause, allowed := r.next(now); pause != step.pause || allowed == step.refused {
			t.Errorf("step %d: %v, allowed: %t; want %v, %t", i, pause, allowed, step.pause, !step.refused)
		}
	}
}

// envThrowaway makes the test's program start a throwaway server in the
// folder that it names. It panics, as a test that times out does, once
// its standard input ends.
const envThrowaway = "WEIR_TEST_THROWAWAY"

func serveThrowaway(home string) {
	s, err := Start(context.Background(), Config{Dir: home, Throwaway: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	file, _ := s.cluster.readPid()
	fmt.Println(file.pid, s.cluster.home.dir)
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	panic("test timed out")
}

func homeBelow(t *testing.T, mode fs.FileMode) string {
	t.Helper()
	above := dir(t)
	testenv.Must(t, os.Chmod(above, mode))
	return filepath.Join(above, "home")
}

// A throwaway server is a caller's, in another process.
type throwaway struct {
	caller *exec.Cmd
	end    func() error // lets the caller panic
	said   *bufio.Scanner
}

func startThrowaway(t *testing.T, home string) throwaway {
	t.Helper()
	caller := exec.Command(os.Args[0])
	caller.Env = append(os.Environ(), envThrowaway+"="+home)
	in, inErr := caller.StdinPipe()
	out, outErr := caller.StdoutPipe()
	testenv.Must(t, errors.Join(inErr, outErr, caller.Start()))
	return throwaway{caller, in.Close, bufio.NewScanner(out)}
}

// place waits for the server, and returns its process and its folder.
func (s throwaway) place(t *testing.T) (pid int, dir string) {
	t.Helper()
	if !s.said.Scan() {
		t.Fatalf("no server: %v", s.caller.Wait())
	}
	id, dir, _ := strings.Cut(s.said.Text(), " ")
	pid, err := strconv.Atoi(id)
	testenv.Must(t, err)
	return pid, dir
}

func (s throwaway) kill(t *testing.T) {
	t.Helper()
	testenv.Must(t, s.caller.Process.Kill())
}

// awaitGone waits until none of the paths exists.
func awaitGone(t *testing.T, paths ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, path := range paths {
		for _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist); _, err = os.Stat(path) {
			if lifecycle.Pause(ctx, 10*time.Millisecond); ctx.Err() != nil {
				t.Fatalf("%s is left behind", path)
			}
		}
	}
}

// awaitPath looks often: some files live for milliseconds.
func awaitPath(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	for _, err := os.Stat(path); err != nil; _, err = os.Stat(path) {
		if lifecycle.Pause(ctx, time.Millisecond); ctx.Err() != nil {
			t.Fatalf("not within %s: %v", testenv.Patience, err)
		}
	}
}

// A throwaway server ends within seconds of its caller, however that
// ends, and nothing of it is left.
func TestEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s throwaway, pid int){
		"killed":   func(t *testing.T, s throwaway, _ int) { s.kill(t) },
		"panicked": func(_ *testing.T, s throwaway, _ int) { _ = s.end() },
		"killed beside a stopped server": func(t *testing.T, s throwaway, pid int) {
			signal(t, pid, syscall.SIGSTOP)
			s.kill(t)
		},
	} {
		for _, mode := range []fs.FileMode{0o755, 0o700} { // the server's account may not reach the second
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				t.Parallel()
				home := homeBelow(t, mode)
				s := startThrowaway(t, home)
				pid, place := s.place(t)
				end(t, s, pid)
				if err := s.caller.Wait(); err == nil {
					t.Error("the caller ended in order")
				}
				awaitGone(t, place, home)
				if isPostgres(pid) {
					t.Error("the server still runs")
				}
			})
		}
	}
}

// A caller that is killed before its server runs leaves nothing either.
func TestKilledWhileItStarts(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"password", "data.new/PG_VERSION", "data/postmaster.pid"} {
		t.Run(strings.ReplaceAll(part, "/", " "), func(t *testing.T) {
			t.Parallel()
			home := homeBelow(t, 0o755)
			s := startThrowaway(t, home)
			awaitPath(t, filepath.Join(home, part))
			s.kill(t)
			_ = s.caller.Wait() // killed
			awaitGone(t, home)
			lifecycle.Pause(t.Context(), 2*time.Second) // initdb and pg_ctl notice that it is gone
			awaitGone(t, home)
		})
	}
}
