package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/filelock"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A home is the folder of one server: data/ (PostgreSQL's own),
// server.log and the one before, the password and the lock.
type home struct {
	dir   string
	asked string // the given folder, which is another one if dir is below fallbackDir
	lock  *filelock.Lock
}

// fallbackDir is the folder of servers whose account can't reach the
// given one, such as below /root. Names in it derive from the given
// folder, so that the next start finds them.
const fallbackDir = "/var/lib/weir"

// openHome creates or finds the home for dir and locks it.
func openHome(dir string, a Account) (*home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	place, err := reachablePlace(dir, a)
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(place)
	if err != nil {
		return nil, err
	}
	return &home{dir: place, asked: dir, lock: lock}, nil
}

func reachablePlace(dir string, a Account) (string, error) {
	if err := a.Own(dir); err != nil {
		return "", fmt.Errorf("cannot make the database's directory: %w", err)
	}
	if a.CanWrite(dir) {
		return dir, nil
	}
	name := sha256.Sum256([]byte(dir))
	place := filepath.Join(fallbackDir, hex.EncodeToString(name[:6]))
	if err := os.MkdirAll(fallbackDir, 0o755); err != nil {
		return "", fmt.Errorf("user %s, which PostgreSQL runs as, cannot reach %q, and there is no other place: %w", a.name, dir, err)
	}
	if err := a.Own(place); err != nil {
		return "", err
	}
	if !a.CanWrite(place) {
		return "", fmt.Errorf("user %s, which PostgreSQL runs as, can reach neither %q nor %q: open the folders above to it, "+
			"or run as an ordinary user", a.name, dir, place)
	}
	note := "PostgreSQL cannot run as root, and its user cannot reach this folder. Its data is in " + place + "\n"
	elsewhere := filepath.Join(dir, "ELSEWHERE")
	if was, err := os.ReadFile(elsewhere); err == nil && string(was) == note {
		return place, nil // it needs no space on a full disk
	}
	return place, atomicfile.Write(elsewhere, note, 0o644)
}

func lockDir(dir string) (*filelock.Lock, error) {
	lock, err := filelock.Try(filepath.Join(dir, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%w: another process holds the database's directory %q: stop it, or choose another directory", ErrLocked, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the database's directory: %w", err)
	}
	return lock, nil
}

func (h *home) close() error { return h.lock.Close() }

func (h *home) path(name string) string { return filepath.Join(h.dir, name) }
func (h *home) data() string            { return h.path("data") }
func (h *home) log() string             { return h.path("server.log") }

// passwordFile belongs to the caller; the server does not read it.
func (h *home) passwordFile() string { return h.path("password") }

// password reads the password; "" if it is lost, or there is none yet.
func (h *home) password() (string, error) {
	raw, err := os.ReadFile(h.passwordFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(raw)), err
}

func (h *home) keepPassword(password string) error {
	return atomicfile.Write(h.passwordFile(), password+"\n", 0o600)
}

// renewPassword sets another password where the former one is lost, such
// as in a power cut. Only a stopped server can be told without the
// former one; one that was killed recovers first.
func (s *Server) renewPassword(ctx context.Context, cfg Config) error {
	s.cluster.logger.Warn("the database's password is lost: setting another one", slog.String("file", s.cluster.home.passwordFile()))
	if s.cluster.runningPort() == 0 {
		if err := s.launch(ctx, cfg); err != nil {
			return err
		}
	}
	if err := s.cluster.stop(ctx); err != nil {
		return err
	}
	return s.cluster.setPassword(ctx, s.password)
}

// setPassword sets the password of both roles at once, in PostgreSQL's
// single-user mode. It passes through a pipe, and is not logged.
func (c *cluster) setPassword(ctx context.Context, password string) error {
	cmd := c.account.Command(ctx, c.home.dir, filepath.Join(c.bin, "postgres"), "--single", "-D", c.home.data(),
		"-c", "log_statement=none", "-c", "log_min_duration_statement=-1", "-c", "log_min_error_statement=panic", "postgres")
	cmd.Stdin = strings.NewReader(fmt.Sprintf("DO $$ BEGIN ALTER ROLE postgres PASSWORD '%[2]s'; "+
		"IF EXISTS (SELECT FROM pg_roles WHERE rolname = '%[1]s') THEN ALTER ROLE %[1]s PASSWORD '%[2]s'; END IF; END $$\n", Role, password))
	out, err := cmd.CombinedOutput()
	if _, failed, found := strings.Cut(string(out), "ERROR:"); found && err == nil {
		line, _, _ := strings.Cut(failed, "\n") // those after it may have the password
		err = errors.New(strings.TrimSpace(line))
	}
	if err != nil {
		return fmt.Errorf("cannot set another password for the database in %q: %w", c.home.data(), err)
	}
	return nil
}

// The limit of a log: this many bytes, and those written between two
// looks. The former log beside it has the same.
const (
	maxLog      = 10 << 20
	logInterval = 10 * time.Second // between looks
)

// A serverLog is the file that a server appends its log to.
type serverLog struct {
	path    string
	account Account
}

// former returns the path of the log rotated last.
func (l serverLog) former() string { return l.path + ".1" }

// open creates a missing log, rotates a long one, and returns its length.
func (l serverLog) open(most int64) (int64, error) {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(file.Close(), l.account.Chown(l.path), l.rotate(most)); err != nil {
		return 0, err
	}
	info, err := os.Stat(l.path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// rotate copies a log longer than most bytes to former and empties it.
// The server keeps its open file: lines written meanwhile may be lost.
func (l serverLog) rotate(most int64) error {
	info, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed
	}
	if err != nil || info.Size() <= most {
		return err
	}
	if err := l.copy(); err != nil {
		return fmt.Errorf("cannot keep the log of PostgreSQL as %q: %w", l.former(), err)
	}
	return os.Truncate(l.path, 0)
}

func (l serverLog) copy() error {
	from, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(l.former(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// since reads the log from an offset on, up to a limit.
func (l serverLog) since(from int64) (string, error) {
	file, err := os.Open(l.path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.NewSectionReader(file, from, maxLog))
	return string(raw), err
}

// tailBytes is enough for the last lines of all processes.
const tailBytes = 64 << 10

// tail reads the end of the log.
func (l serverLog) tail() (string, error) {
	info, err := os.Stat(l.path)
	if err != nil {
		return "", err
	}
	return l.since(max(info.Size()-tailBytes, 0))
}

// keep rotates the log whenever it is longer than most, until the
// returned function is called.
func (l serverLog) keep(most int64, interval time.Duration, logger logger) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = lifecycle.Every(ctx, interval, func(context.Context) error { return l.rotate(most) }, lifecycle.Warn(logger, "cannot rotate the log of PostgreSQL"))
	}()
	return func() {
		cancel()
		<-ended
	}
}
