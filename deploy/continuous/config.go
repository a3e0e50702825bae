package continuous

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/process"
	"github.com/weirlog/weir/shared/telemetry"
)

// Config holds what a continuous backup needs.
type Config struct {
	To     string   `help:"Directory of the backup. One process at a time holds it." env:"WEIR_BACKUP_DIR" required:""`
	Expect []string `name:"modules" help:"Modules whose tables the server has: a verified restore must have them, too." env:"WEIR_BACKUP_MODULES" default:"ingest,ledger,grouping,tenants"`

	Database httpapi.Secret `name:"database-url" help:"Address of the server, for a role with REPLICATION. Without it, the server that weir run has started in the data directory." env:"WEIR_BACKUP_DATABASE_URL"`
	DataDir  string         `help:"Data directory of a weir run." env:"WEIR_DATA_DIR" default:".weir"`

	Schedule `embed:""`

	Slot        string `help:"Replication slot by which the server keeps its log until it is here." env:"WEIR_BACKUP_SLOT" default:"weir_backup"`
	Amcheck     bool   `help:"Let each verification compare all indexes with their tables, too." env:"WEIR_BACKUP_AMCHECK"`
	PostgresBin string `name:"postgres-bin" help:"Folder of PostgreSQL's programs, of the server's major version. Without it, where distributions put them." env:"WEIR_POSTGRES_BIN"`

	Telemetry telemetry.Config `embed:""`

	Interval time.Duration `kong:"-"` // between looks at the server; 0: lookInterval
}

// A Schedule says how often to do what, and how much to keep.
type Schedule struct {
	Every  time.Duration `help:"How often to make a base backup." env:"WEIR_BACKUP_EVERY" default:"24h"`
	Verify time.Duration `help:"How often to restore the newest base backup into a scratch server, at least; each is restored once in any case." env:"WEIR_BACKUP_VERIFY" default:"24h"`
	Keep   int           `help:"How many base backups to keep, with all log since the oldest. The last one that was restored is always kept." env:"WEIR_BACKUP_KEEP" default:"7"`
}

func (s Schedule) check() error {
	if s.Every <= 0 || s.Verify <= 0 || s.Keep < 1 {
		return errors.New("WEIR_BACKUP_EVERY and WEIR_BACKUP_VERIFY must be longer than 0, and WEIR_BACKUP_KEEP at least 1")
	}
	return nil
}

// address returns where the server is, as the role that replicates.
func (c Config) address() (string, error) {
	if given := c.Database.Reveal(); given != "" {
		return given, process.CheckDatabaseURL("WEIR_BACKUP_DATABASE_URL", given)
	}
	at, err := postgres.RunningAdmin(filepath.Join(c.DataDir, "postgres"))
	if errors.Is(err, postgres.ErrNotRunning) {
		return "", fmt.Errorf("WEIR_BACKUP_DATABASE_URL is not set, and no weir run is at work in the data directory %s", c.DataDir)
	}
	return at, err
}

// login splits an address: every user of the machine can read arguments,
// so the password goes into the environment.
func login(address, application string) (dsn string, env []string, err error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return "", nil, errors.New("cannot read WEIR_BACKUP_DATABASE_URL")
	}
	if password, given := parsed.User.Password(); given {
		parsed.User, env = url.User(parsed.User.Username()), []string{"PGPASSWORD=" + password}
	}
	query := parsed.Query()
	query.Set("application_name", application)
	parsed.RawQuery = query.Encode()
	return parsed.String(), env, nil
}
