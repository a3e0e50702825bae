package postgres

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

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
