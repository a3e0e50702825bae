package allinone

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/telemetry"
)

// Config holds the settings of the process.
type Config struct {
	Listen         string         `help:"Address to serve HTTPS on. The certificate is for localhost and for the host named here." env:"WEIR_LISTEN" default:"localhost:8443"`
	DataDir        string         `help:"Directory of everything that is kept: certificates, dev.env, database, broker." env:"WEIR_DATA_DIR" default:".weir"`
	DatabaseURL    httpapi.Secret `help:"Postgres to use; without it one is started in the data directory." env:"WEIR_DATABASE_URL"`
	Brokers        []string       `help:"Kafka brokers to use, host:port; without them a broker runs in this process." env:"WEIR_BROKERS"`
	BrokerAccess   bus.Access     `embed:"" prefix:"brokers-"`
	BrokerSync     kafka.Sync     `help:"When the broker of this process answers: always, once a record is on the disk; os, once the operating system has it, which loses the last seconds if the machine stops." env:"WEIR_BROKER_SYNC" enum:"always,os" default:"always"`
	TrustedProxies []string       `help:"Addresses or prefixes of proxies that end TLS and whose X-Forwarded headers count." env:"WEIR_TRUSTED_PROXIES"`
	OperatorToken  httpapi.Secret `help:"Service token that may create organizations; without it one is made up once." env:"WEIR_OPERATOR_TOKEN"`

	NoDemo bool `help:"Create no demo organization." env:"WEIR_NO_DEMO"`

	LogPartitions int           `help:"Partitions of weir.logs.v1 where it does not exist yet." env:"WEIR_LOG_PARTITIONS" default:"12"`
	LogRetention  time.Duration `help:"How long weir.logs.v1 keeps records where it does not exist yet. 0: without limit." env:"WEIR_LOG_RETENTION" default:"168h"`

	Drain       time.Duration            `help:"How long open requests may continue after a stop. Whatever kills the process has to wait a little longer." env:"WEIR_DRAIN" default:"45s"`
	Connections httpapi.ConnectionConfig `embed:""`

	Telemetry telemetry.Config `embed:""`

	Modules Modules `kong:"-"` // the modules' own settings (see ModulesFromEnvironment)
}

// Validate joins what is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("WEIR_LISTEN is %q: use host:port, such as localhost:8443 or :8443", c.Listen))
	}
	if c.DataDir == "" {
		errs = append(errs, errors.New("WEIR_DATA_DIR is empty: name a directory"))
	}
	if c.LogPartitions < 0 || c.LogRetention < 0 {
		errs = append(errs, errors.New("WEIR_LOG_PARTITIONS and WEIR_LOG_RETENTION can't be negative"))
	}
	if len(c.Brokers) == 0 && (c.BrokerAccess.SignsIn() || c.BrokerAccess.Encrypts()) {
		errs = append(errs, errors.New("a user, a token or TLS is set for brokers, but WEIR_BROKERS is not: the broker of this process has a user of its own"))
	}
	errs = append(errs, c.BrokerAccess.Validate())
	_, err := httpapi.ParseProxies(c.TrustedProxies)
	return errors.Join(append(errs, err, c.Connections.Validate())...)
}

// host returns the listener's name for clients on this machine.
func (c Config) host() string {
	host, _, err := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() {
		return "localhost"
	}
	return host
}

// ErrLocked means that another process uses the data directory.
var ErrLocked = errors.New("data directory in use")

// A dataDir is the directory of all data. One process at a time holds
// it; the kernel releases it with the process.
type dataDir struct {
	path string // absolute
	lock *os.File
}

// openDataDir creates a missing directory, and locks it. Other users
// may pass through it, since the database runs as another user if the
// caller is root; they can't read the secrets in it.
func openDataDir(path string) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the data directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the data directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("%w: another weir runs on %q: stop it, or name another directory with WEIR_DATA_DIR", ErrLocked, path)
	}
	return &dataDir{path: path, lock: lock}, nil
}

// Lock keeps other processes away from a data directory until release is
// called. It fails with ErrLocked while one uses it.
func Lock(path string) (release func() error, err error) {
	d, err := openDataDir(path)
	if err != nil {
		return nil, err
	}
	return d.close, nil
}

func (d *dataDir) close() error { return d.lock.Close() }

func (d *dataDir) tls() string      { return filepath.Join(d.path, "tls") }
func (d *dataDir) postgres() string { return filepath.Join(d.path, "postgres") }
func (d *dataDir) kafka() string    { return filepath.Join(d.path, "kafka") }
func (d *dataDir) state() string    { return filepath.Join(d.path, "state") }
func (d *dataDir) env() string      { return filepath.Join(d.path, EnvFile) }
