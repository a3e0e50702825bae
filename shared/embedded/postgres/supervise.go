package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/lifecycle"
)

// Limits of restarts. The pause before a restart is zero for the first
// one within restartWindow, and then doubles.
const (
	mostRestarts  = 5
	restartWindow = 10 * time.Minute
	restartPause  = time.Second
	fullDiskPause = 5 * time.Second
	lookInterval  = 100 * time.Millisecond
)

// ErrKeepsEnding means that a server ended again and again.
var ErrKeepsEnding = errors.New("PostgreSQL keeps ending")

// NewRestarts registers the metric of Supervise.
func NewRestarts(metrics prometheus.Registerer) prometheus.Counter {
	return promauto.With(metrics).NewCounter(prometheus.CounterOpts{
		Name: "weir_embedded_postgres_restarts_total", Help: "Restarts of the embedded PostgreSQL after it had ended by itself.",
	})
}

// Supervise starts the server again, at the same address, whenever it has
// ended, until ctx ends: mostRestarts times within restartWindow at most,
// and then it returns ErrKeepsEnding. Starts that a full disk prevents do
// not count: they are repeated until there is space. Supervise must have
// returned before Stop is called.
func (s *Server) Supervise(ctx context.Context, clock func() time.Time) error {
	return s.supervise(ctx, clock, restarts{pause: restartPause})
}

func (s *Server) supervise(ctx context.Context, clock func() time.Time, restarts restarts) error {
	var failed error // of the last start
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, lookInterval) {
		if s.cluster.runningPort() != 0 {
			continue
		}
		reason := s.cluster.whyEnded(failed)
		pause, allowed := restarts.next(clock())
		if !allowed {
			return fmt.Errorf("%w: %d restarts within %s did not help: %s: remove the cause, and start again",
				ErrKeepsEnding, mostRestarts, restartWindow, reason)
		}
		s.cluster.logger.Warn("PostgreSQL has ended and is started again", slog.Int("restart", len(restarts.at)), slog.Int("of", mostRestarts),
			slog.Duration("after", pause), slog.String("reason", reason))
		lifecycle.Pause(ctx, pause)
		if failed = s.cluster.startWithSpace(ctx, s.port, s.settings); failed == nil {
			s.restarts.Inc()
			s.cluster.logger.Info("PostgreSQL runs again", slog.Int("port", s.port))
		}
	}
	return nil
}

// startWithSpace starts the server once the disk has space for it.
func (c *cluster) startWithSpace(ctx context.Context, port int, settings map[string]string) error {
	err := c.start(ctx, port, settings)
	for errors.Is(err, ErrDiskFull) && ctx.Err() == nil {
		c.logger.Error("PostgreSQL waits for space on its disk", slog.String("error", err.Error()))
		lifecycle.Pause(ctx, fullDiskPause)
		err = c.start(ctx, port, settings)
	}
	return err
}

// whyEnded returns why the server does not run: its last start failed,
// or what the end of its log says.
func (c *cluster) whyEnded(failed error) string {
	if failed != nil {
		return failed.Error()
	}
	end, err := c.log().tail()
	if err != nil {
		return err.Error()
	}
	if i := strings.LastIndex(end, panicked); i >= 0 {
		end, _, _ = strings.Cut(end[i+len(panicked):], "\n")
	}
	return fmt.Sprintf("%s (more in %q)", lastLine([]byte(end), errors.New("its log does not say why")), c.home.log())
}

// panicked precedes the reason in the log of a server that gives up.
const panicked = "PANIC:"

// restarts are the last ones, within restartWindow.
type restarts struct {
	pause time.Duration // before the second
	at    []time.Time
}

// next notes a restart, and returns the pause before it; or that there
// were as many as are allowed.
func (r *restarts) next(now time.Time) (pause time.Duration, allowed bool) {
	for len(r.at) > 0 && now.Sub(r.at[0]) >= restartWindow {
		r.at = r.at[1:]
	}
	if len(r.at) == mostRestarts {
		return 0, false
	}
	if n := len(r.at); n > 0 {
		pause = r.pause << (n - 1)
	}
	r.at = append(r.at, now)
	return pause, true
}

// A watchdog ends a throwaway server with the process that started it:
// it waits for the end of a pipe that this process holds open, which
// the kernel closes in any case. It runs as the caller, who may remove
// what the server's account may not.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

// watchScript waits, then ends the server in $1 as after a crash, also
// one that is stopped (SIGSTOP), and removes all that it was given. The
// server may be starting, or its directory still be initialized, so
// both are repeated, for ten seconds. On Linux it signals no process
// that has got the id of an ended server.
const watchScript = `cat >/dev/null
running() {
	pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) &&
	{ [ ! -e "/proc/$pid/cwd" ] || [ "/proc/$pid/cwd" -ef "$1/data" ]; } &&
	kill -QUIT "$pid" 2>/dev/null && kill -CONT "$pid"
}
tries=0
while running "$1" || ! rm -rf "$@" 2>/dev/null; do
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] || exit 1
	sleep 0.1
done`

func (h *home) watch() (*watchdog, error) {
	cmd := exec.Command("/bin/sh", "-c", watchScript, "weir-postgres-watchdog", h.dir, h.asked)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C must not reach it
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot watch over the test database: %w", err)
	}
	return &watchdog{cmd, pipe}, nil
}

// release lets the watchdog clean up now and waits for it.
func (w *watchdog) release() error {
	if err := w.pipe.Close(); err != nil {
		return err
	}
	return w.cmd.Wait()
}

// Watch has the server in dir, whichever process started it, end as after
// a crash, and dir removed, by release or when this process ends in any way.
func Watch(dir string) (release func() error, err error) {
	guard, err := (&home{dir: dir, asked: dir}).watch()
	if err != nil {
		return nil, err
	}
	return guard.release, nil
}

// Faults of a server, for tests.

// Start starts the server again, at the same address, and returns
// when it answers.
func (s *Server) Start() error {
	return s.cluster.start(context.Background(), s.port, s.settings)
}

// Restart shuts the server down immediately, as a crash does, and starts it.
func (s *Server) Restart() error {
	out, err := s.cluster.run(context.Background(), "pg_ctl", "stop", "-m", "immediate", "-w", "-t", "60", "-s", "-D", s.cluster.home.data())
	if err != nil {
		return fmt.Errorf("cannot stop PostgreSQL in %q: %s", s.cluster.home.data(), lastLine(out, err))
	}
	return s.Start()
}

// processes are the main one of a server, and those for its clients.
type processes struct{ of *cluster }

// Pause stops the processes (SIGSTOP).
func (p processes) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume continues them.
func (p processes) Resume() error { return p.signal(syscall.SIGCONT) }

// Kill kills them, and returns when they are gone.
func (p processes) Kill() error {
	file, found := p.of.readPid()
	if !found {
		return errors.New("PostgreSQL does not run")
	}
	pids, err := family(file.pid)
	if err == nil {
		err = p.signal(syscall.SIGKILL)
	}
	for _, pid := range pids {
		for err == nil && isPostgres(pid) {
			time.Sleep(time.Millisecond)
		}
	}
	return err
}

func (p processes) signal(signal syscall.Signal) error {
	file, found := p.of.readPid()
	if !found {
		return errors.New("PostgreSQL does not run")
	}
	// The main process first: then it starts no more of them.
	if err := syscall.Kill(file.pid, signal); err != nil {
		return err
	}
	pids, err := family(file.pid)
	for _, pid := range pids {
		if killErr := syscall.Kill(pid, signal); killErr != nil && !errors.Is(killErr, syscall.ESRCH) {
			err = errors.Join(err, killErr)
		}
	}
	return err
}

// family returns a process and its children.
func family(parent int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err == nil && len(stats) == 0 {
		err = errors.New("the processes of PostgreSQL can be identified only on Linux")
	}
	pids := []int{parent}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(raw), ") ") // 4711 (postgres) S 4700 …
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids, err
}
