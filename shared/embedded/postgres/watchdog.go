package postgres

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
)

// A watchdog ends a throwaway server with the process that started it:
// it waits for the end of a pipe that this process holds open, which
// the kernel closes in any case.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

// watchScript waits, then stops the server of $2 with $1 and removes $3.
const watchScript = `cat >/dev/null; "$1" stop -m immediate -s -D "$2" >/dev/null 2>&1; rm -rf "$3"/* ; rmdir "$3" 2>/dev/null; :`

func (c *cluster) watch() (*watchdog, error) {
	cmd := c.account.command(context.Background(), "/", "/bin/sh", "-c", watchScript, "weir-postgres-watchdog",
		filepath.Join(c.bin, "pg_ctl"), c.home.data(), c.home.dir)
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
