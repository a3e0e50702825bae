package kafka

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/scram"
)

// The broker's only user, with all rights, and its SASL mechanism,
// which never sends the password.
const (
	User      = "weir"
	Mechanism = scram.Mechanism
)

// PasswordFile returns the path of a data directory's password. If it
// is missing or empty, the next start generates another.
func PasswordFile(dir string) string { return filepath.Join(dir, "password") }

// ErrNotRunning means that no broker serves a data directory.
var ErrNotRunning = errors.New("no broker runs on the data directory")

// addressFile returns the path in which a broker on a data directory
// stores its address.
func addressFile(dir string) string { return filepath.Join(dir, "address") }

// keepAddress lets programs of the same user find the broker, whose
// port changes with each start.
func keepAddress(cfg Config, address string) error {
	if cfg.Dir == "" {
		return nil
	}
	if err := atomicfile.Write(addressFile(cfg.Dir), address+"\n", 0o600); err != nil {
		return fmt.Errorf("cannot keep the embedded broker's address: %w", err)
	}
	return nil
}

// Running returns the address of the broker on a data directory.
func Running(dir string) (string, error) {
	if _, err := os.Stat(dir); err != nil { // locking would create it
		return "", fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	lock, err := lockDir(dir)
	if err == nil {
		return "", errors.Join(fmt.Errorf("%w: %q", ErrNotRunning, dir), lock.Release())
	}
	if !errors.Is(err, ErrLocked) {
		return "", err
	}
	raw, err := os.ReadFile(addressFile(dir))
	if err != nil {
		return "", fmt.Errorf("cannot read the embedded broker's address: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

var errNoPlace = errors.New("an embedded broker that keeps nothing has no place for a password: it has to be Open")

// ensurePassword reads the password, or generates a missing or empty one;
// "" for an open broker.
func ensurePassword(cfg Config) (string, error) {
	if cfg.Open {
		return "", nil
	}
	if cfg.Dir == "" {
		return "", errNoPlace
	}
	path := PasswordFile(cfg.Dir)
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read the embedded broker's password: %w", err)
	}
	if password := strings.TrimSpace(string(raw)); password != "" {
		return password, os.Chmod(path, 0o600)
	}
	password := rand.Text()
	if err := atomicfile.Write(path, password+"\n", 0o600); err != nil {
		return "", fmt.Errorf("cannot keep the embedded broker's password: %w", err)
	}
	return password, nil
}

// secretOf returns what the server knows of the only user; nil for an
// open broker.
func secretOf(cfg Config) (*scram.Secret, error) {
	password, err := ensurePassword(cfg)
	if err != nil || password == "" {
		return nil, err
	}
	return scram.NewSecret(User, password)
}
