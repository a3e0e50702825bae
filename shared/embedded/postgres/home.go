package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/embedded/internal/dirlock"
)

// A home is the folder of one server: data/ (PostgreSQL's own),
// server.log and the one before, the password and the lock.
type home struct {
	dir   string
	asked string // the given folder, which is another one if dir is below fallbackDir
	lock  *dirlock.Lock
}

// fallbackDir is the folder of servers whose account can't reach the
// given one, such as below /root. Names in it derive from the given
// folder, so that the next start finds them.
const fallbackDir = "/var/lib/weir"

// openHome creates or finds the home for dir and locks it.
func openHome(dir string, a account) (*home, error) {
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

func reachablePlace(dir string, a account) (string, error) {
	if err := a.own(dir); err != nil {
		return "", fmt.Errorf("cannot make the database's directory: %w", err)
	}
	if a.canWrite(dir) {
		return dir, nil
	}
	name := sha256.Sum256([]byte(dir))
	place := filepath.Join(fallbackDir, hex.EncodeToString(name[:6]))
	if err := os.MkdirAll(fallbackDir, 0o755); err != nil {
		return "", fmt.Errorf("user %s, which PostgreSQL runs as, cannot reach %q, and there is no other place: %w", a.name, dir, err)
	}
	if err := a.own(place); err != nil {
		return "", err
	}
	if !a.canWrite(place) {
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

func lockDir(dir string) (*dirlock.Lock, error) {
	lock, err := dirlock.Take(dir)
	if errors.Is(err, dirlock.ErrHeld) {
		return nil, fmt.Errorf("%w: another process holds the database's directory %q: stop it, or choose another directory", ErrLocked, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the database's directory: %w", err)
	}
	return lock, nil
}

func (h *home) close() error { return h.lock.Release() }

func (h *home) path(name string) string { return filepath.Join(h.dir, name) }
func (h *home) data() string            { return h.path("data") }
func (h *home) log() string             { return h.path("server.log") }
