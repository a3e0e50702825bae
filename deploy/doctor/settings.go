package doctor

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/endpoint"
	gateway "github.com/weirlog/weir/deploy/gateway/app"
	"github.com/weirlog/weir/deploy/settings"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/connections"
)

// A hostChecker checks this machine: its settings, files and directories.
type hostChecker struct {
	checker

	services  allinone.Modules   // settings of the modules
	catalogue []settings.Setting // of all services
}

// settings checks whether the environment can be read as the services
// do, and for misspelled settings.
func (c *hostChecker) settings() {
	var err error
	if c.catalogue, err = catalogue(); err != nil {
		c.report.add(Fail, "settings", "catalogue", err.Error(), "Report it: no setting causes it.")
	}
	if c.services, err = allinone.ModulesFromEnvironment(); err != nil {
		c.report.add(Fail, "settings", "environment", err.Error(), "Correct the setting: services with it don't start. --help of each shows what it can be.")
	} else {
		c.report.add(OK, "settings", "environment", "every module can read its settings", "")
	}
	known := variables(c.catalogue)
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if meant, misspelled := known.nearest(name); misspelled {
			c.report.add(Warn, "settings", name, "it is no setting", fmt.Sprintf("Is %s meant? It is not set by this.", meant))
		}
	}
}

// secretVariables returns those of settings that a file may hold.
func secretVariables(all []settings.Setting) (names []string) {
	for _, s := range all {
		if s.Secret && s.Variable != "" {
			names = append(names, s.Variable)
		}
	}
	return names
}

// catalogue returns every setting of every service.
func catalogue() (all []settings.Setting, err error) {
	modules := allinone.Modules{}
	for _, of := range []any{&allinone.Config{}, &modules.Ingest, &modules.Ledger, &modules.Grouping, &modules.Tenants, &gateway.Config{}, &Config{}} {
		found, err := settings.Of(of)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// names is a set of variables.
type names map[string]bool

func variables(all []settings.Setting) names {
	known := names{endpoint.MigratingDatabase: true}
	for _, s := range all {
		known[s.Variable] = true
	}
	for _, m := range modules {
		known[endpoint.DatabaseOf(m.name)], known[endpoint.MigratingDatabaseOf(m.name)], known[endpoint.ReplicaOf(m.name)] = true, true, true
	}
	return known
}

// maxTypos is the largest distance of a misspelled name, in characters.
const maxTypos = 2

// nearest finds the setting that a name resembles.
func (n names) nearest(name string) (meant string, misspelled bool) {
	plain := strings.TrimSuffix(name, "_FILE")
	if !strings.HasPrefix(name, "WEIR") || n[name] || n[plain] {
		return "", false
	}
	for _, known := range sorted(n) {
		if known != "" && distance(plain, known) <= maxTypos {
			return known, true
		}
	}
	return "", false
}

// distance returns how many characters have to be inserted, removed
// or replaced (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Config holds an installation's settings, by its services' names, and what
// else to check. Addresses of databases come only from the environment, so
// that an unreadable file is a finding and does not end the run.
type Config struct {
	Modules []string `arg:"" optional:"" name:"module" help:"Modules to check: ingest, ledger, grouping, tenants. Without one: all." enum:"ingest,ledger,grouping,tenants"`

	Brokers      []string   `help:"Kafka brokers, host:port. Without them, the one that weir run has started in the data directory." env:"WEIR_BROKERS"`
	BrokerAccess bus.Access `embed:"" prefix:"brokers-"`

	LogConfig `embed:""`

	CertificateConfig `embed:""`

	Connections httpapi.ConnectionConfig `embed:""`
	Deletions   erasure.Retention        `embed:""`

	FolderConfig `embed:""`

	PrivateNetwork bool          `help:"Nobody else is on the network of the brokers and databases: plaintext is no finding." env:"WEIR_PRIVATE_NETWORK"`
	Replicas       int           `help:"How many processes of each service run, for PostgreSQL's max_connections." default:"1"`
	MaxLag         time.Duration `help:"For how long a record may wait for its consumer: longer is a warning, fifteen times as long a failure." default:"1m"`
	CheckTimeout   time.Duration `help:"How long each check may take." default:"30s"`

	Machine Machine `kong:"-"`
}

// LogConfig is how weir.logs.v1 should be.
type LogConfig struct {
	LogPartitions int           `help:"How many partitions weir.logs.v1 should have." env:"WEIR_LOG_PARTITIONS" default:"12"`
	LogRetention  time.Duration `help:"How long weir.logs.v1 should keep records. 0: without limit." env:"WEIR_LOG_RETENTION" default:"168h"`
}

// CertificateConfig is the server's certificate, and what it should be for.
type CertificateConfig struct {
	TLSCertFile   string   `help:"PEM file with the server's certificate." env:"WEIR_TLS_CERT_FILE"`
	TLSKeyFile    string   `help:"PEM file with the certificate's key." env:"WEIR_TLS_KEY_FILE"`
	CAFile        string   `help:"Authorities that the certificate is checked against, PEM; the system's when empty." env:"WEIR_CA_FILE"`
	Hosts         []string `name:"host" help:"Names that the certificate has to be for, beside that of WEIR_CONSOLE_ORIGIN."`
	ConsoleOrigin string   `help:"Origin under which people reach the console, such as https://weir.example." env:"WEIR_CONSOLE_ORIGIN"`
}

// FolderConfig is what is kept on this machine.
type FolderConfig struct {
	DataDir   string        `help:"Data directory of a weir run; if WEIR_BROKERS or a database is not set, those of this directory are checked." env:"WEIR_DATA_DIR" default:".weir"`
	StateDir  string        `help:"Directory in which services keep what others published." env:"WEIR_STATE_DIR"`
	BackupDir string        `help:"Directory of backups: what weir backup, continuous or not, or another tool has written shows their age." env:"WEIR_BACKUP_DIR"`
	BackupAge time.Duration `help:"How old the newest backup may be." env:"WEIR_BACKUP_AGE" default:"26h"`
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
	defaultCheckTimeout = 30 * time.Second // the machine may be in trouble
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
