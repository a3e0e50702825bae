package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Faults of a server, for tests: of its main process and of those
// for its clients.

// Watch has the server in dir, whichever process started it, end as after
// a crash, and dir removed, by release or when this process ends in any way.
func Watch(dir string) (release func() error, err error) {
	guard, err := (&home{dir: dir, asked: dir}).watch()
	if err != nil {
		return nil, err
	}
	return guard.release, nil
}

// Pause stops the processes (SIGSTOP).
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume continues them.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

// Kill kills them, and returns when they are gone.
func (s *Server) Kill() error {
	file, found := s.cluster.readPid()
	if !found {
		return errors.New("PostgreSQL does not run")
	}
	pids, err := family(file.pid)
	if err == nil {
		err = s.signal(syscall.SIGKILL)
	}
	for _, pid := range pids {
		for err == nil && isPostgres(pid) {
			time.Sleep(time.Millisecond)
		}
	}
	return err
}

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

func (s *Server) signal(signal syscall.Signal) error {
	file, found := s.cluster.readPid()
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
