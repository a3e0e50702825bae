package kafka

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/group"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/server"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
	"github.com/weirlog/weir/shared/filelock"
)

// Config configures a broker.
type Config struct {
	Dir    string       // data directory, created if missing; "" keeps everything in memory until Close
	Port   int          // TCP port on 127.0.0.1; 0 takes a free one
	Logger *slog.Logger // required

	// Sync is when a record counts as written; zero: SyncAlways.
	Sync Sync

	Clock        func() time.Time // by which records age if it is ahead of the machine's; nil: the machine's
	SegmentBytes int              // size of a log file; 0: 32 MiB

	CompactBytes int64                 // size of the compacted topics' files from which on they are compacted; 0: 32 MiB
	Metrics      prometheus.Registerer // nil: none

	// Open admits every client: for tests. Otherwise a client
	// authenticates as User, with the password that the first start
	// generates in PasswordFile: a client that writes to the log as a
	// module could make itself an operator.
	Open bool

	files disk.FS // nil: the machine's, or memory without Dir
}

// A Sync is when a record counts as written: it can be read and its
// producer gets an answer.
type Sync string

const (
	// SyncAlways: once it is on the disk. All that wait share a sync.
	SyncAlways Sync = "always"

	// SyncOS: once the operating system has it, which loses it if the
	// machine stops within some seconds.
	SyncOS Sync = "os"
)

func (s Sync) validate() error {
	switch s {
	case "", SyncAlways, SyncOS:
		return nil
	}
	return fmt.Errorf("the embedded broker cannot sync %q: use %s or %s", string(s), SyncAlways, SyncOS)
}

// Errors of Start, each wrapped with a remedy.
var (
	ErrPortInUse = errors.New("port in use")
	ErrLocked    = errors.New("data directory in use")
	ErrDamaged   = storage.ErrDamaged
)

// segmentBytes is the default of Config.SegmentBytes.
const segmentBytes = 32 << 20

// A Broker is a running broker. Safe for concurrent use.
type Broker struct {
	store    *storage.Store
	groups   *group.Coordinator
	server   *server.Server
	listener net.Listener
	lock     *filelock.Lock
	keeper   *housekeeper
	closing  sync.Once
}

// Start opens the data directory and serves it. When it returns, all
// acknowledged records are there.
func Start(cfg Config) (*Broker, error) {
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	b := &Broker{lock: lock}
	if err := b.start(cfg); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return b, nil
}

func (b *Broker) start(cfg Config) (err error) {
	if err := cfg.Sync.validate(); err != nil {
		return err
	}
	secret, err := secretOf(cfg)
	if err != nil {
		return err
	}
	if b.listener, err = listen(cfg); err != nil {
		return err
	}
	if err := b.open(cfg); err != nil {
		return errors.Join(err, b.listener.Close())
	}
	if err := keepAddress(cfg, b.Addr()); err != nil {
		return errors.Join(err, b.listener.Close(), b.store.Close())
	}
	b.server = server.New(server.Config{Store: b.store, Groups: b.groups, Secret: secret, Now: machineTime, Logger: cfg.Logger})
	b.keeper = startHousekeeper(cfg, b.store, b.groups)
	b.server.Serve(b.listener)
	return nil
}

// machineTime is the machine's clock: a broker stamps files by it, and
// refuses records that are far ahead of it.
func machineTime() time.Time { return time.Now() } //nolint:forbidigo // see above

// open reads the log, and compacts it, before any client is admitted.
func (b *Broker) open(cfg Config) (err error) {
	if b.store, err = storage.Open(optionsOf(cfg)); err != nil {
		return err
	}
	if b.groups, err = openGroups(b.store, cfg); err != nil {
		return errors.Join(err, b.store.Close())
	}
	err = b.store.Compact(clockOf(cfg)())
	if errors.Is(err, storage.ErrNotWritten) { // a full disk can be read, and expired records make room
		cfg.Logger.Warn("embedded broker: cannot compact at the start", "error", err)
		return nil
	}
	if err != nil {
		return errors.Join(err, b.store.Close())
	}
	return nil
}

func optionsOf(cfg Config) storage.Options {
	o := storage.Options{
		FS: cfg.files, Dir: cfg.Dir, SegmentBytes: int64(cfg.SegmentBytes), Sync: cfg.Sync != SyncOS,
		Clock: clockOf(cfg), Stamp: cfg.Clock != nil, Machine: machineTime, Logger: cfg.Logger,
	}
	if o.FS == nil {
		o.FS = disk.OS{}
		if cfg.Dir == "" {
			o.FS = disk.NewMemory(o.Clock)
		}
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = segmentBytes
	}
	return o
}

func clockOf(cfg Config) func() time.Time {
	if cfg.Clock == nil {
		return machineTime
	}
	return cfg.Clock
}

// openGroups reads the committed offsets.
func openGroups(store *storage.Store, cfg Config) (*group.Coordinator, error) {
	offsets := store.Topic(server.OffsetsTopic)
	if offsets == nil {
		var err error
		if offsets, err = store.Create(server.OffsetsTopic, 1, map[string]string{"cleanup.policy": "compact", "max.message.bytes": "104857600"}); err != nil {
			return nil, err
		}
	}
	log, err := offsets.Partition(0)
	if err != nil {
		return nil, err
	}
	return group.New(log, clockOf(cfg), cfg.Logger)
}

// Addr returns the broker's address, host:port.
func (b *Broker) Addr() string { return b.listener.Addr().String() }

// Refused lists requests that it does not serve, such as those in
// versions that Apache Kafka 4 dropped: "JoinGroup v1". The connection
// is closed, as there.
func (b *Broker) Refused() []string { return b.server.Refused() }

// Retain deletes now what exceeds retention.ms and retention.bytes. The
// broker does it every minute.
func (b *Broker) Retain(context.Context) error { return b.keeper.retain() }

// Compact drops now the records that newer ones of the same key have
// replaced. The broker does it at its start, and when compacted topics
// have doubled in size.
func (b *Broker) Compact(context.Context) error { return b.keeper.compact() }

// Pack makes compressed batches now of small ones in topics that are not
// compacted. The broker does it every minute.
func (b *Broker) Pack(context.Context) error { return storage.Pack(b.store) }

// Close refuses new clients, saves the state and frees port and directory.
// It returns what could not be saved. Further calls do nothing.
func (b *Broker) Close() error {
	var err error
	b.closing.Do(func() {
		_ = b.listener.Close()
		b.keeper.stop()
		b.server.Close()
		err = errors.Join(b.store.Close(), b.lock.Close())
	})
	return err
}

func listen(cfg Config) (net.Listener, error) {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Port))
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: the embedded broker cannot listen on %s: stop the program that holds it, or choose another port", ErrPortInUse, addr)
	}
	if err != nil {
		return nil, fmt.Errorf("the embedded broker cannot listen on %s: %w", addr, err)
	}
	return ln, nil
}

// lockDir makes and locks the data directory; nil without one.
func lockDir(dir string) (*filelock.Lock, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the broker's data directory: %w", err)
	}
	lock, err := filelock.Try(filepath.Join(dir, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%w: another process serves the broker's data directory %q: stop it, or choose another directory", ErrLocked, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the broker's data directory: %w", err)
	}
	return lock, nil
}

// The broker's only user, with all rights, and its SASL mechanism,
// which never sends the password.
const (
	User      = "weir"
	Mechanism = server.Mechanism
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
		return "", errors.Join(fmt.Errorf("%w: %q", ErrNotRunning, dir), lock.Close())
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
func secretOf(cfg Config) (*server.Secret, error) {
	password, err := ensurePassword(cfg)
	if err != nil || password == "" {
		return nil, err
	}
	return server.NewSecret(User, password)
}
