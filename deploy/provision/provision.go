package provision

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/acls"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/identity"
)

// Databases are the modules with a database, a role that owns it and
// one that serves.
var Databases = []string{"ingest", "ledger", "grouping", "tenants"}

// Names of files in the directory. The certificates are in
// Certificates, by localca's names.
const (
	OperatorToken    = "operator_token"    // creates organizations
	WebhookKeys      = "webhook_keys"      // the secrets of webhooks derive from them
	PostgresPassword = "postgres_password" // of the server's owner
	GrafanaPassword  = "grafana_password"  // of its user admin
	Roles            = "roles.sql"         // creates roles and databases
	Certificates     = "tls"
)

// DatabaseURL returns the file with the address of a module's database
// for the serving role.
func DatabaseURL(module string) string { return module + "_database_url" }

// MigrateDatabaseURL returns that for the role that owns the database.
func MigrateDatabaseURL(module string) string { return module + "_migrate_database_url" }

// BrokerPassword returns the file with a program's password at the brokers.
func BrokerPassword(program string) string { return program + "_broker_password" }

// The containers run as users that this machine doesn't know, so files
// are readable for everybody: only the owner may enter the directory.
const (
	dirMode  = 0o700
	fileMode = 0o644
)

// Ensure creates what is missing in dir. The certificate is for
// hosts, besides localhost.
func Ensure(dir, postgresHost string, now time.Time, hosts ...string) error {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return fmt.Errorf("cannot make the directory of secrets: %w", err)
	}
	files, err := localca.Ensure(filepath.Join(dir, Certificates), now, hosts...)
	if err != nil {
		return err
	}
	return errors.Join(readable(files.ServerKey), secrets(dir), brokerUsers(dir), databases(dir, postgresHost))
}

// readable lets the containers' user read the server's key. The
// authority's stays closed.
func readable(key string) error {
	return errors.Join(os.Chmod(filepath.Dir(key), 0o755), os.Chmod(key, fileMode)) //nolint:gosec // dir is closed
}

func secrets(dir string) error {
	return errors.Join(
		ensure(dir, OperatorToken, identity.ServiceTokenPrefix+random(24)),
		ensure(dir, WebhookKeys, random(32)),
		ensure(dir, PostgresPassword, random(16)),
		ensure(dir, GrafanaPassword, random(16)),
	)
}

func brokerUsers(dir string) error {
	for _, program := range acls.Programs() {
		if err := ensure(dir, BrokerPassword(program), random(16)); err != nil {
			return err
		}
	}
	return nil
}

// databases writes the address of each module's database, and the
// script that creates them. It always rewrites the script, so that it
// follows changed addresses.
func databases(dir, host string) error {
	var script strings.Builder
	for _, module := range Databases {
		const address = "postgres://%s:%s@%s/%s"
		err := errors.Join(
			ensure(dir, DatabaseURL(module), fmt.Sprintf(address, module, random(16), host, module)),
			ensure(dir, MigrateDatabaseURL(module), fmt.Sprintf(address, module+"_owner", random(16), host, module)),
		)
		if err != nil {
			return err
		}
		statements, err := roles(filepath.Join(dir, MigrateDatabaseURL(module)), filepath.Join(dir, DatabaseURL(module)))
		if err != nil {
			return err
		}
		script.WriteString(statements)
	}
	return write(filepath.Join(dir, Roles), script.String())
}

// ensure creates a missing file.
func ensure(dir, name, content string) error {
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return write(path, content+"\n")
}

// write replaces a file atomically.
func write(path, content string) error {
	if err := atomicfile.Write(path, content, fileMode); err != nil { // the directory is closed
		return fmt.Errorf("cannot write a secret: %w", err)
	}
	return nil
}

func random(bytes int) string {
	made := make([]byte, bytes)
	_, _ = rand.Read(made) // never fails
	return hex.EncodeToString(made)
}
