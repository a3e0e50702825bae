package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"
)

// Config configures a broker.
type Config struct {
	Dir    string       // data directory, created if missing; "" keeps everything in memory until Close
	Port   int          // TCP port on 127.0.0.1; 0 takes a free one
	Logger *slog.Logger // required

	Clock        func() time.Time // by which records age if it is ahead of the machine's; nil: the machine's
	SegmentBytes int              // size of a log file; 0: 32 MiB

	CompactBytes int64                 // size of the compacted topics' files from which on they are compacted; 0: 32 MiB
	Metrics      prometheus.Registerer // nil: none

	// Open admits every client: for tests. Otherwise a client
	// authenticates as User, with the password that the first start
	// generates in PasswordFile: a client that writes to the log as a
	// module could make itself an operator.
	Open bool

	// RefuseDropped closes a connection that uses a protocol version
	// which Apache Kafka 4 no longer serves, as Apache Kafka does.
	// Tests set it: kfake still serves those versions and would hide
	// the mistake. See Refused.
	RefuseDropped bool
}

// Errors of Start, each wrapped with a remedy.
var (
	ErrPortInUse = errors.New("port in use")
	ErrLocked    = errors.New("data directory in use")
	ErrDamaged   = errors.New("data directory damaged")
)

// segmentBytes is the default of Config.SegmentBytes. A start reads one
// file at a time into memory; 32 MiB is seconds of full load.
const segmentBytes = 32 << 20

// A Broker is a running broker. Safe for concurrent use.
type Broker struct {
	cluster  *kfake.Cluster
	listener *listener
	lock     *dirLock
	password string // "": an open broker
	keeper   *housekeeper
	closing  sync.Once
	failures *failureLog
}

// Start opens the data directory and serves it. When it returns, all
// acknowledged records are there.
func Start(cfg Config) (*Broker, error) {
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	b := &Broker{lock: lock, failures: &failureLog{logger: cfg.Logger}}
	if err := b.start(cfg); err != nil {
		return nil, errors.Join(err, lock.release())
	}
	return b, nil
}

func (b *Broker) start(cfg Config) (err error) {
	if b.password, err = ensurePassword(cfg); err != nil {
		return err
	}
	ln, err := listen(cfg)
	if err != nil {
		return err
	}
	b.listener = ln
	if err := b.open(cfg); err != nil {
		ln.Close()
		b.closeCluster()
		return err
	}
	if err := keepAddress(cfg, b.Addr()); err != nil {
		ln.Close()
		b.closeCluster()
		return err
	}
	ln.open()
	if b.keeper, err = startHousekeeper(cfg, b.cluster, b.Addr(), b.password); err != nil {
		return err
	}
	return b.Compact(context.Background())
}

// open reads the log before any client is admitted.
func (b *Broker) open(cfg Config) error {
	if cfg.Dir == "" {
		return b.load(cfg)
	}
	if err := errors.Join(restoreCompaction(cfg.Dir), restoreEnds(cfg.Dir)); err != nil {
		return err
	}
	if err := inspect(cfg.Dir); err != nil {
		return err
	}
	return b.load(cfg)
}

func (b *Broker) load(cfg Config) error {
	users, err := restrict(cfg, b.password)
	if err != nil {
		return err
	}
	cluster, err := kfake.NewCluster(append(users, options(cfg, b.listener, b.failures)...)...)
	if err != nil {
		return fmt.Errorf("%w: cannot read the broker's log in %q: %w; %s", ErrDamaged, cfg.Dir, err, wayOut)
	}
	b.cluster = cluster
	refuseAhead(cluster)
	return nil
}

func options(cfg Config, ln *listener, failures *failureLog) []kfake.Opt {
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.DefaultNumPartitions(1),
		kfake.GroupMinSessionTimeout(time.Second), // dead members are found as fast as a group asks
		kfake.ListenFn(func(string, string) (net.Listener, error) { return ln, nil }),
		kfake.WithLogger(failures),
		kfake.BrokerConfigs(map[string]string{
			"log.segment.bytes": strconv.Itoa(cmp.Or(cfg.SegmentBytes, segmentBytes)),
			// kfake would drop records of compacted topics after a week,
			// and lose a partition's end once all of it has expired. So it
			// never expires or compacts by itself; the housekeeper does.
			"log.retention.ms":           "-1",
			"log.retention.bytes":        "-1",
			"log.cleaner.backoff.ms":     strconv.FormatInt(never.Milliseconds(), 10),
			"default.replication.factor": "1",
		}),
	}
	if cfg.Dir != "" {
		opts = append(opts, kfake.DataDir(cfg.Dir))
	}
	return opts
}

// Addr returns the broker's address, host:port.
func (b *Broker) Addr() string { return b.listener.Addr().String() }

// Refused lists the requests refused by RefuseDropped, in order, such
// as "JoinGroup v1".
func (b *Broker) Refused() []string { return b.listener.refusals() }

// Retain deletes now what exceeds retention.ms and retention.bytes. The
// broker does it every minute.
func (b *Broker) Retain(ctx context.Context) error {
	if b.keeper == nil {
		return nil
	}
	return b.keeper.runOnce(ctx, b.keeper.clock())
}

// Compact drops now the records that newer ones of the same key have
// replaced. The broker does it at its start, and when compacted topics
// have doubled in size.
func (b *Broker) Compact(ctx context.Context) error {
	if b.keeper == nil {
		return nil
	}
	return b.keeper.compactor.always(ctx)
}

// Close refuses new clients, saves the state and frees port and directory.
// It returns what could not be saved. Further calls do nothing.
func (b *Broker) Close() error {
	var err error
	b.closing.Do(func() {
		b.keeper.stop()
		b.closeCluster()
		err = errors.Join(b.failures.err(), b.lock.release())
	})
	return err
}

func (b *Broker) closeCluster() {
	if b.cluster != nil {
		b.cluster.Close()
	}
}

func listen(cfg Config) (*listener, error) {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Port))
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: the embedded broker cannot listen on %s: stop the program that holds it, or choose another port", ErrPortInUse, addr)
	}
	if err != nil {
		return nil, fmt.Errorf("the embedded broker cannot listen on %s: %w", addr, err)
	}
	return newListener(ln, cfg), nil
}

// A dirLock is an exclusive lock of a data directory. The kernel
// releases it with the process.
type dirLock struct{ file *os.File }

func lockDir(dir string) (*dirLock, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the broker's data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the broker's data directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("%w: another process serves the broker's data directory %q: stop it, or choose another directory", ErrLocked, dir)
	}
	return &dirLock{file}, nil
}

func (l *dirLock) release() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// A failureLog logs kfake's errors and keeps the first one for Close.
type failureLog struct {
	logger *slog.Logger
	mu     sync.Mutex
	first  error
}

// Logf implements kfake's logger.
func (f *failureLog) Logf(level kfake.LogLevel, format string, args ...any) {
	switch level {
	case kfake.LogLevelError:
		err := fmt.Errorf("embedded broker: "+format, args...)
		f.logger.Error(err.Error())
		f.mu.Lock()
		if f.first == nil {
			f.first = err
		}
		f.mu.Unlock()
	case kfake.LogLevelWarn:
		f.logger.Warn("embedded broker: " + fmt.Sprintf(format, args...))
	}
}

func (f *failureLog) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}
