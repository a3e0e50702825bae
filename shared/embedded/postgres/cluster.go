package postgres

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A cluster is PostgreSQL's term for one data directory and its server.
type cluster struct {
	home    *home
	account Account
	bin     string
	logger  logger

	patience time.Duration // with processes of a killed server; 0: orphansPatience
}

// major reads the version of the data directory, 0 if there is none yet.
func (h *home) major() (int, error) {
	raw, err := os.ReadFile(filepath.Join(h.data(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(h.data()); err == nil {
			return 0, damaged(h.data(), "PG_VERSION is missing")
		}
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0, damaged(h.data(), fmt.Sprintf("PG_VERSION is %q", raw))
	}
	return n, nil
}

// initialize creates the data directory, atomically, even across a crash.
func (c *cluster) initialize(ctx context.Context, password string, throwaway bool) error {
	fresh := c.home.path("data.new")
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	pwfile := c.home.path("initial-password")
	if err := os.WriteFile(pwfile, []byte(password+"\n"), 0o600); err != nil {
		return err
	}
	defer os.Remove(pwfile)
	if err := c.account.Chown(pwfile); err != nil {
		return err
	}
	args := []string{"-D", fresh, "-U", "postgres", "--pwfile=" + pwfile,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions"}
	if throwaway {
		args = append(args, "--no-sync")
	}
	out, err := c.run(ctx, "initdb", args...)
	if err != nil {
		return fmt.Errorf("cannot make a database in %q: %s", c.home.dir, lastLine(out, err))
	}
	if err := os.Rename(fresh, c.home.data()); err != nil {
		return err
	}
	return atomicfile.SyncDir(c.home.dir) // or a power cut takes the name back, and the next start removes it
}

// Processes of a killed server end by themselves, once they notice. A
// new server does not start beside them. Those that do not notice are
// killed, on Linux: as after a crash, the log of PostgreSQL has what
// they committed.
const (
	orphansTime     = 30 * time.Second
	orphansPatience = 10 * time.Second
	orphansPause    = 100 * time.Millisecond
)

// start starts the server on a port once the processes of a killed one
// have ended, and waits until it answers.
func (c *cluster) start(ctx context.Context, port int, settings map[string]string) error {
	waiting, cancel := context.WithTimeout(ctx, orphansTime)
	defer cancel()
	patience := time.NewTimer(cmp.Or(c.patience, orphansPatience))
	defer patience.Stop()
	err := c.startOnce(ctx, port, settings)
	for errors.Is(err, ErrLocked) && waiting.Err() == nil {
		select {
		case <-patience.C:
			c.killOrphans()
		default:
			lifecycle.Pause(waiting, orphansPause)
		}
		err = c.startOnce(ctx, port, settings)
	}
	return err
}

// startOnce tries it. Every user of the machine can read a command
// line, so it holds no secret.
func (c *cluster) startOnce(ctx context.Context, port int, settings map[string]string) error {
	if err := c.clearStalePid(); err != nil {
		return err
	}
	from, err := c.log().open(maxLog)
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: PostgreSQL cannot write its log: make space: %w", ErrDiskFull, err)
	}
	if err != nil {
		return err
	}
	options := fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories=", port)
	for name, value := range settings {
		options += fmt.Sprintf(" -c %s=%s", name, value)
	}
	out, err := c.run(ctx, "pg_ctl", "start", "-w", "-t", "60", "-s", "-D", c.home.data(), "-l", c.home.log(), "-o", options)
	if err == nil || strings.Contains(string(out), "did not start in time") {
		err = c.awaitRecovery(ctx)
	}
	if err != nil {
		return c.explain(from, port, err)
	}
	return nil
}

// recoveryInterval is how often a start that takes long is logged.
const recoveryInterval = 10 * time.Second

// errEnded means that a server ended while it started.
var errEnded = errors.New("it ended while it started")

// awaitRecovery waits as long as a server starts: after a crash it
// applies its own log first, and after a restore an archived one, which
// can be gigabytes. Meanwhile it may only be read.
func (c *cluster) awaitRecovery(ctx context.Context) error {
	notice := time.NewTicker(recoveryInterval)
	defer notice.Stop()
	for {
		file, found := c.readPid()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !found || !c.owns(file.pid):
			return errEnded
		case !file.starting:
			return nil
		}
		select {
		case <-notice.C:
			end, _ := c.log().tail() // if it can't be read, it says nothing
			c.logger.Info("PostgreSQL recovers what it had not finished", slog.String("progress", lastLine([]byte(end), errors.New("not known"))))
		default:
			lifecycle.Pause(ctx, lookInterval)
		}
	}
}

func (c *cluster) log() serverLog { return serverLog{c.home.log(), c.account} }

// explain turns the server's log from an offset on into one line.
func (c *cluster) explain(from int64, port int, err error) error {
	log, readErr := c.log().since(from)
	if readErr != nil {
		return err
	}
	if strings.Contains(log, "Address already in use") {
		return fmt.Errorf("%w: PostgreSQL cannot listen on 127.0.0.1:%d: stop the program that holds it, or choose another port", ErrPortInUse, port)
	}
	if strings.Contains(log, "pre-existing shared memory block") {
		return fmt.Errorf("%w: processes of a PostgreSQL that was killed still use %q: end them, and start again", ErrLocked, c.home.data())
	}
	if strings.Contains(log, "No space left on device") || c.diskFull() {
		return fmt.Errorf("%w: PostgreSQL cannot write to %q: make space", ErrDiskFull, c.home.data())
	}
	return damaged(c.home.data(), fmt.Sprintf("PostgreSQL does not start: %s (all of it in %q)", firstFailure(log, err), c.home.log()))
}

// firstFailure returns the first line of a server log with a reason
// for its end.
func firstFailure(log string, otherwise error) string {
	lines := bufio.NewScanner(strings.NewReader(log))
	for lines.Scan() {
		for _, severity := range []string{"PANIC:", "FATAL:", "could not"} {
			if _, what, found := strings.Cut(lines.Text(), severity); found {
				return strings.TrimSpace(what)
			}
		}
	}
	return lastLine([]byte(log), otherwise)
}

// stop ends the server: clients are disconnected, everything is on disk.
func (c *cluster) stop(ctx context.Context) error {
	out, err := c.run(ctx, "pg_ctl", "stop", "-m", "fast", "-w", "-t", "60", "-s", "-D", c.home.data())
	if err != nil && c.runningPort() != 0 {
		return fmt.Errorf("cannot stop PostgreSQL in %q: %s", c.home.data(), lastLine(out, err))
	}
	return nil
}

func (c *cluster) run(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := c.account.Command(ctx, c.home.dir, filepath.Join(c.bin, program), args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.Bytes(), err
}

func lastLine(out []byte, otherwise error) string {
	text := strings.TrimSpace(string(out))
	if text == "" {
		return otherwise.Error()
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// leastSpace is what a start needs of the disk: a file of the
// write-ahead log, and one more for a checkpoint.
const leastSpace = 2 * 16 << 20

// diskFull reports whether the disk has too little space for a start. A
// full one may have kept the server from logging that.
func (c *cluster) diskFull() bool {
	var disk syscall.Statfs_t
	err := syscall.Statfs(c.home.dir, &disk)
	return err == nil && disk.Bavail*uint64(disk.Bsize) < leastSpace //nolint:gosec // positive
}

// A pidFile is PostgreSQL's postmaster.pid: process, directory, start
// time, port, and in the eighth line the state, one a line.
type pidFile struct {
	pid, port int
	starting  bool
}

func (c *cluster) readPid() (pidFile, bool) {
	raw, err := os.ReadFile(filepath.Join(c.home.data(), "postmaster.pid"))
	if err != nil {
		return pidFile{}, false
	}
	lines := strings.Split(string(raw), "\n")
	if len(lines) < 4 {
		return pidFile{}, true
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(lines[0]))
	port, _ := strconv.Atoi(strings.TrimSpace(lines[3]))
	starting := len(lines) > 7 && strings.TrimSpace(lines[7]) == "starting"
	return pidFile{pid, port, starting || c.recoversArchive()}, true
}

// recoversArchive reports whether the server recovers a backup: it calls
// itself ready as soon as it can be read.
func (c *cluster) recoversArchive() bool {
	_, err := os.Stat(filepath.Join(c.home.data(), "recovery.signal"))
	return err == nil
}

// runningPort returns the port of a server on the data directory that
// has outlived its starter; 0: none.
func (c *cluster) runningPort() int {
	file, found := c.readPid()
	if !found || !c.owns(file.pid) {
		return 0
	}
	return file.port
}

// clearStalePid removes the pid file of a dead server. PostgreSQL does so
// itself, unless another process of the same user has that process id now.
func (c *cluster) clearStalePid() error {
	file, found := c.readPid()
	if !found || c.owns(file.pid) {
		return nil
	}
	return os.Remove(filepath.Join(c.home.data(), "postmaster.pid"))
}

// owns reports whether a process is a live PostgreSQL server that works in
// the data directory, if the system can answer that. Another server's
// process may have got the id of a killed one.
func (c *cluster) owns(pid int) bool {
	if !isPostgres(pid) {
		return false
	}
	place, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	return errors.Is(err, fs.ErrNotExist) || err == nil && c.isData(place)
}

// isData reports whether a directory is the data directory.
func (c *cluster) isData(place fs.FileInfo) bool {
	data, err := os.Stat(c.home.data())
	return err == nil && os.SameFile(data, place)
}

// killOrphans kills the processes that a killed server has left.
func (c *cluster) killOrphans() {
	if file, found := c.readPid(); found && c.owns(file.pid) {
		return // it is no orphan's
	}
	stats, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, path := range stats {
		pid, _ := strconv.Atoi(filepath.Base(path))
		if place, err := os.Stat(path + "/cwd"); err != nil || !c.isData(place) || !isPostgres(pid) {
			continue
		}
		c.logger.Warn("killing a process that a killed PostgreSQL has left", slog.Int("pid", pid))
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
}

// isPostgres reports whether a process is a live PostgreSQL server, if
// the system can answer that.
func isPostgres(pid int) bool {
	if pid <= 0 {
		return false
	}
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // 4711 (postgres) S …
	if err != nil {
		return true // not Linux: PostgreSQL itself decides
	}
	name, state, _ := strings.Cut(string(stat), ") ")
	ended := strings.HasPrefix(state, "Z") // killed, and not yet reaped by its parent
	return !ended && strings.HasSuffix(name, "(postgres")
}

// An Account is the user of the server's processes, because PostgreSQL
// refuses to run as root.
type Account struct {
	name     string
	uid, gid uint32
	switched bool // the caller is root, the server is not
}

// serverUsers are the users for root's servers; the first that exists is used.
var serverUsers = []string{"postgres", "nobody"}

func ServerAccount() (Account, error) {
	if os.Geteuid() != 0 {
		return Account{}, nil
	}
	for _, name := range serverUsers {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return Account{name, uint32(uid), uint32(gid), true}, nil
		}
	}
	return Account{}, fmt.Errorf("PostgreSQL refuses to run as root, and there is none of the users %v to run it as: run as an ordinary user", serverUsers)
}

// Command returns a program that runs as the account, in dir, outside
// the caller's terminal session: Ctrl-C must reach only the caller, who
// stops the server after use.
func (a Account) Command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a.switched {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: []uint32{}}
	}
	return cmd
}

// Own creates a directory, private to the account.
func (a Account) Own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return a.Chown(dir)
}

// Chown makes the account the owner of a file or directory.
func (a Account) Chown(path string) error {
	if !a.switched {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// ChownAll does so for a whole tree.
func (a Account) ChownAll(root string) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !a.switched {
			return err
		}
		return os.Lchown(path, int(a.uid), int(a.gid))
	})
}

// CanWrite reports whether the account can work in dir: all its parents
// must allow it.
func (a Account) CanWrite(dir string) bool {
	if !a.switched {
		return true
	}
	return a.Command(context.Background(), dir, "/bin/sh", "-c", "test -w .").Run() == nil
}
