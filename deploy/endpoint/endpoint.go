package endpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/process"
	"github.com/weirlog/weir/shared/replica"
	tenants "github.com/weirlog/weir/tenants/app"
)

// SharedDatabase is the setting for the database of all modules.
const SharedDatabase = "WEIR_DATABASE_URL"

// DatabaseOf returns the setting for one module's own database.
func DatabaseOf(module string) string {
	return "WEIR_" + strings.ToUpper(module) + "_DATABASE_URL"
}

// MigratingDatabase is the setting for the database of all modules, as
// the role that owns their schemas if another one serves.
const MigratingDatabase = "WEIR_MIGRATE_DATABASE_URL"

// MigratingDatabaseOf is MigratingDatabase for one module.
func MigratingDatabaseOf(module string) string {
	return "WEIR_" + strings.ToUpper(module) + "_MIGRATE_DATABASE_URL"
}

// DatabaseURL returns the address of a module's database. It comes from
// the environment or from a file, never from a flag: it holds a password.
func DatabaseURL(module, dataDir string) (httpapi.Secret, error) {
	if url, err := given(DatabaseOf(module), SharedDatabase); url != "" || err != nil {
		return url, err
	}
	url, err := postgres.Running(filepath.Join(dataDir, "postgres"))
	if errors.Is(err, postgres.ErrNotRunning) {
		return "", fmt.Errorf("neither %s nor %s is set, and no weir run is at work in the data directory %s", DatabaseOf(module), SharedDatabase, dataDir)
	}
	return httpapi.Secret(url), err
}

// MigratingDatabaseURL is DatabaseURL for the role that owns the
// schema: the same if no other is set.
func MigratingDatabaseURL(module, dataDir string) (httpapi.Secret, error) {
	if url, err := given(MigratingDatabaseOf(module), MigratingDatabase); url != "" || err != nil {
		return url, err
	}
	return DatabaseURL(module, dataDir)
}

// MigratesApart reports whether a separate role is set that owns the schema.
func MigratesApart(module string) bool {
	url, err := given(MigratingDatabaseOf(module), MigratingDatabase)
	return url != "" || err != nil
}

// ReplicaOf returns the setting for one module's own read replica.
func ReplicaOf(module string) string {
	return "WEIR_" + strings.ToUpper(module) + "_REPLICA_DATABASE_URL"
}

// ReplicaURL returns the address of a module's read replica; empty if
// none is set.
func ReplicaURL(module string) (httpapi.Secret, error) {
	return given(ReplicaOf(module), replica.URLVariable)
}

// given returns the first that is set of some variables, or of files
// that they name; empty if none is.
func given(variables ...string) (httpapi.Secret, error) {
	for _, variable := range variables {
		url := os.Getenv(variable)
		if file := os.Getenv(variable + process.FileSuffix); url == "" && file != "" {
			var err error
			if url, err = process.SecretIn(file, variable+process.FileSuffix); err != nil {
				return "", err
			}
		}
		if url != "" {
			return httpapi.Secret(url), process.CheckDatabaseURL(variable, url)
		}
	}
	return "", nil
}

// EmbeddedBroker returns the broker that a weir run has started in a
// data directory, and how to sign in there.
func EmbeddedBroker(dataDir string) (brokers []string, access bus.Access, err error) {
	dir := filepath.Join(dataDir, "kafka")
	address, err := kafka.Running(dir)
	if errors.Is(err, kafka.ErrNotRunning) {
		return nil, access, errors.New("WEIR_BROKERS is not set, and no weir run is at work in the data directory " + dataDir)
	}
	return []string{address}, bus.Access{User: kafka.User, PasswordFile: kafka.PasswordFile(dir), Mechanism: kafka.Mechanism}, err
}

// Schemas are those of the modules' tables, by module; Modules are
// their names in order.
var (
	Modules = []string{"ingest", "ledger", "grouping", "tenants"}
	Schemas = map[string]pg.Schema{"ingest": ingest.Schema(), "ledger": ledger.Schema(), "grouping": grouping.Schema(), "tenants": tenants.Schema()}
)
