package doctor

import (
	"cmp"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/connections"
)

// Config holds an installation's settings, by its services' names, and what
// else to check. Addresses of databases come only from the environment, so
// that an unreadable file is a finding and does not end the run.
type Config struct {
	Modules []string `arg:"" optional:"" name:"module" help:"Modules to check: ingest, ledger, grouping, tenants. Without one: all." enum:"ingest,ledger,grouping,tenants"`

	Brokers      []string   `help:"Kafka brokers, host:port. Without them, the one that weir run has started in the data directory." env:"WEIR_BROKERS"`
	BrokerAccess bus.Access `embed:"" prefix:"brokers-"`

	LogPartitions int           `help:"How many partitions weir.logs.v1 should have." env:"WEIR_LOG_PARTITIONS" default:"12"`
	LogRetention  time.Duration `help:"How long weir.logs.v1 should keep records. 0: without limit." env:"WEIR_LOG_RETENTION" default:"168h"`

	TLSCertFile string   `help:"PEM file with the server's certificate." env:"WEIR_TLS_CERT_FILE"`
	TLSKeyFile  string   `help:"PEM file with the certificate's key." env:"WEIR_TLS_KEY_FILE"`
	CAFile      string   `help:"Authorities that the certificate is checked against, PEM; the system's when empty." env:"WEIR_CA_FILE"`
	Hosts       []string `name:"host" help:"Names that the certificate has to be for, beside that of WEIR_CONSOLE_ORIGIN."`

	ConsoleOrigin string `help:"Origin under which people reach the console, such as https://weir.example." env:"WEIR_CONSOLE_ORIGIN"`

	Connections httpapi.ConnectionConfig `embed:""`
	Deletions   erasure.Retention        `embed:""`

	DataDir   string        `help:"Data directory of a weir run; if WEIR_BROKERS or a database is not set, those of this directory are checked." env:"WEIR_DATA_DIR" default:".weir"`
	StateDir  string        `help:"Directory in which services keep what others published." env:"WEIR_STATE_DIR"`
	BackupDir string        `help:"Directory of backups: its newest file shows their age. Empty: not checked." env:"WEIR_BACKUP_DIR"`
	BackupAge time.Duration `help:"How old the newest backup may be." env:"WEIR_BACKUP_AGE" default:"26h"`

	Replicas     int           `help:"How many processes of each service run, for PostgreSQL's max_connections." default:"1"`
	MaxLag       time.Duration `help:"For how long a record may wait for its consumer: longer is a warning, fifteen times as long a failure." default:"1m"`
	CheckTimeout time.Duration `help:"How long each check may take." default:"5s" aliases:"patience"`

	Machine Machine `kong:"-"`
}

// A Machine is what the doctor checks besides the servers; nil fields
// are this machine's.
type Machine struct {
	Clock func() time.Time
	Space func(dir string) (Space, error)
	Files func() (int, error) // that a process may open

	Passable func(dir string) bool // by every user
}

func (m Machine) orThis() Machine {
	if m.Clock == nil {
		m.Clock = time.Now
	}
	if m.Space == nil {
		m.Space = spaceOf
	}
	if m.Files == nil {
		m.Files = connections.Files
	}
	if m.Passable == nil {
		m.Passable = passable
	}
	return m
}

const (
	defaultCheckTimeout = 5 * time.Second
	defaultLag          = time.Minute
	defaultBackup       = 26 * time.Hour
	defaultDataDir      = ".weir"
)

func (c Config) orDefault() Config {
	c.Machine = c.Machine.orThis()
	c.CheckTimeout, c.MaxLag, c.BackupAge = cmp.Or(c.CheckTimeout, defaultCheckTimeout), cmp.Or(c.MaxLag, defaultLag), cmp.Or(c.BackupAge, defaultBackup)
	c.Replicas, c.DataDir = max(1, c.Replicas), cmp.Or(c.DataDir, defaultDataDir)
	return c
}
