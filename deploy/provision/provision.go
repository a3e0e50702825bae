package provision

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xdg-go/scram"

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
	OperatorToken      = "operator_token"      // creates organizations
	WebhookKeys        = "webhook_keys"        // the secrets of webhooks derive from them
	PostgresPassword   = "postgres_password"   // of the server's owner
	GrafanaPassword    = "grafana_password"    // of its user admin
	ClickHousePassword = "clickhouse_password" // of ingest's user, where there is a ClickHouse
	ClickHouseURL      = "ingest_clickhouse_url"
	BackupDatabaseURL  = "backup_database_url" // of the role that replicates
	Roles              = "roles.sql"           // creates roles and databases
	Certificates       = "tls"
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
	return errors.Join(readable(files.ServerKey), secrets(dir), clickHouse(dir), brokerUsers(dir), databases(dir, postgresHost))
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

// clickHouse is for compose.clickhouse.yaml.
func clickHouse(dir string) error {
	if err := ensure(dir, ClickHousePassword, random(16)); err != nil {
		return err
	}
	password, err := os.ReadFile(filepath.Join(dir, ClickHousePassword))
	if err != nil {
		return fmt.Errorf("cannot read a secret: %w", err)
	}
	return ensure(dir, ClickHouseURL, "http://weir_ingest:"+strings.TrimSpace(string(password))+"@clickhouse:8123/weir")
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
	statements, err := backupRole(dir, host)
	if err != nil {
		return err
	}
	script.WriteString(statements)
	return write(filepath.Join(dir, Roles), script.String())
}

// backupRole returns the script for the role of continuous backups.
func backupRole(dir, host string) (string, error) {
	if err := ensure(dir, BackupDatabaseURL, fmt.Sprintf("postgres://backup:%s@%s/postgres", random(16), host)); err != nil {
		return "", err
	}
	role, err := read(filepath.Join(dir, BackupDatabaseURL))
	if err != nil {
		return "", err
	}
	script, err := role.script()
	return script + fmt.Sprintf("ALTER ROLE %s REPLICATION;\n", identifier(role.role)), err
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

// roleScript creates a role, and sets its password by a verifier. Like
// the other script it may run repeatedly.
const roleScript = `SELECT 'CREATE ROLE %[1]s LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = %[2]s)\gexec
ALTER ROLE %[1]s PASSWORD %[3]s;
`

// databaseScript creates a database that one role owns with all its
// contents, and to which only one other may connect.
const databaseScript = `SELECT 'CREATE DATABASE %[1]s' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = %[2]s)\gexec
ALTER DATABASE %[1]s OWNER TO %[3]s;
REVOKE ALL ON DATABASE %[1]s FROM PUBLIC;
GRANT CONNECT ON DATABASE %[1]s TO %[4]s;
\connect %[1]s
REASSIGN OWNED BY %[4]s TO %[3]s;
\connect postgres
`

// roles returns the script for a database and its two roles, by the
// addresses in the files of the owning and the serving role.
func roles(ownerFile, servingFile string) (string, error) {
	owner, failedOwner := read(ownerFile)
	serving, failedServing := read(servingFile)
	if err := errors.Join(failedOwner, failedServing); err != nil {
		return "", err
	}
	if owner.database != serving.database || owner.role == serving.role {
		return "", fmt.Errorf("the addresses in %q and %q have to name two roles of one database", ownerFile, servingFile)
	}
	makeOwner, failedOwner := owner.script()
	makeServing, failedServing := serving.script()
	return makeOwner + makeServing + fmt.Sprintf(databaseScript,
		identifier(owner.database), literal(owner.database), identifier(owner.role), identifier(serving.role)), errors.Join(failedOwner, failedServing)
}

// An address holds the parts of a database's address.
type address struct{ role, password, database string }

func (a address) script() (string, error) {
	kept, err := verifier(a.password)
	if err != nil {
		return "", fmt.Errorf("the password of the role %q has characters that no password may have: choose another one", a.role)
	}
	return fmt.Sprintf(roleScript, identifier(a.role), literal(a.role), literal(kept)), nil
}

func read(file string) (a address, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return a, fmt.Errorf("cannot read the address of a database: %w", err)
	}
	parsed, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return a, fmt.Errorf("the file %q holds no address of a database", file) // the file's name may be shown
	}
	password, given := parsed.User.Password()
	a = address{parsed.User.Username(), password, strings.TrimPrefix(parsed.Path, "/")}
	if !given || a.role == "" || a.database == "" {
		return a, fmt.Errorf("the address in %q lacks a user, a password or a database", file)
	}
	return a, nil
}

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
func literal(text string) string    { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }

// rounds is how often a password is hashed, as in PostgreSQL.
const rounds = 4096

// verifier returns what PostgreSQL stores of a password. Sent instead, it
// keeps the password out of statements, and so out of the server's logs.
func verifier(password string) (string, error) {
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails
	return salted(password, salt[:])
}

// salted returns the form of RFC 5803.
func salted(password string, salt []byte) (string, error) {
	client, err := scram.SHA256.NewClient("", password, "") // the form names no user
	if err != nil {
		return "", err
	}
	kept := client.GetStoredCredentials(scram.KeyFactors{Salt: string(salt), Iters: rounds})
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, text(salt), text(kept.StoredKey), text(kept.ServerKey)), nil
}
