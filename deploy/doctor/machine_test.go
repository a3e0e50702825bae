package doctor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

var machineFaults = []fault{
	{"full disk", func(_ *testing.T, _ *installation, c *Config) {
		c.Machine.Space = func(string) (Space, error) { return Space{Free: 3, Total: 100}, nil }
	}, Finding{Check: "disk", Level: Fail, Seen: "3%"}},
	{"full disk of the broker alone", func(_ *testing.T, i *installation, c *Config) {
		c.Machine.Space = func(dir string) (Space, error) {
			if dir == filepath.Join(i.dir, "kafka") {
				return Space{Free: 3, Total: 100, Device: 2}, nil
			}
			return Space{Free: 50, Total: 100, Device: 1}, nil
		}
	}, Finding{Check: "disk", Level: Fail, Seen: "3%"}},
	{"missing state directory", func(t *testing.T, _ *installation, c *Config) {
		c.StateDir, c.Machine.Space = filepath.Join(t.TempDir(), "nowhere"), nil
	}, Finding{Check: "disk", Level: Fail, Seen: "no such file"}},
	{"few files", func(_ *testing.T, _ *installation, c *Config) {
		c.Machine.Files = func() (int, error) { return 1024, nil }
	},
		Finding{Check: "files", Level: Warn, Seen: "512 connections instead of 2048"}},
	{"too few files", func(_ *testing.T, _ *installation, c *Config) {
		c.Connections.Max, c.Machine.Files = 2000, func() (int, error) { return 1024, nil }
	}, Finding{Check: "files", Level: Fail, Seen: "cannot hold 2000"}},
	{"misspelled setting", func(t *testing.T, _ *installation, _ *Config) { t.Setenv("WEIR_LOG_RETENTON", "24h") },
		Finding{Check: "settings", Subject: "WEIR_LOG_RETENTON", Level: Warn, Seen: "no setting"}},
	{"setting that can't be read", func(t *testing.T, _ *installation, _ *Config) { t.Setenv("WEIR_LEDGER_BATCH_RECORDS", "many") },
		Finding{Check: "settings", Subject: "environment", Level: Fail, Seen: "many"}},
}

var secretFaults = []fault{
	{"secret that is not there", func(t *testing.T, _ *installation, _ *Config) {
		t.Setenv("WEIR_DATABASE_URL", "")
		t.Setenv("WEIR_DATABASE_URL_FILE", filepath.Join(t.TempDir(), "nowhere"))
	}, Finding{Check: "secret", Subject: "WEIR_DATABASE_URL_FILE", Level: Fail, Seen: "no such file"}},
	{"empty secret", func(t *testing.T, _ *installation, _ *Config) {
		file := filepath.Join(t.TempDir(), "token")
		testenv.Must(t, os.WriteFile(file, []byte("\n"), 0o600))
		t.Setenv("WEIR_OPERATOR_TOKEN_FILE", file)
	}, Finding{Check: "secret", Subject: "WEIR_OPERATOR_TOKEN_FILE", Level: Fail, Seen: "is empty"}},
	{"secret that is given twice", func(t *testing.T, _ *installation, _ *Config) {
		t.Setenv("WEIR_DATABASE_URL_FILE", filepath.Join(t.TempDir(), "url"))
	}, Finding{Check: "secret", Subject: "WEIR_DATABASE_URL_FILE", Level: Fail, Seen: "WEIR_DATABASE_URL is set, too"}},
	{"secret that everybody can read", func(t *testing.T, _ *installation, c *Config) {
		file := filepath.Join(t.TempDir(), "keys")
		testenv.Must(t, os.WriteFile(file, []byte(wrongPassword), 0o600))
		testenv.Must(t, os.Chmod(file, 0o644))
		t.Setenv("WEIR_OIDC_CLIENT_SECRET_FILE", file)
		c.Machine.Passable = func(string) bool { return true }
	}, Finding{Check: "secret", Subject: "WEIR_OIDC_CLIENT_SECRET_FILE", Level: Warn, Seen: "every user of this machine"}},
}

var certificateFaults = []fault{
	{"expired certificate", func(t *testing.T, _ *installation, c *Config) { serve(t, c, time.Now().AddDate(-2, 0, 0)) },
		Finding{Check: "certificate", Level: Fail, Seen: "it expired at"}},
	{"certificate that expires soon", func(t *testing.T, _ *installation, c *Config) { serve(t, c, time.Now().AddDate(0, 0, -390)) },
		Finding{Check: "certificate", Level: Warn, Seen: "it expires at"}},
	{"certificate for another host", func(_ *testing.T, _ *installation, c *Config) { c.ConsoleOrigin = "https://weir.example" },
		Finding{Check: "certificate", Level: Fail, Seen: "not for weir.example"}},
	{"key that doesn't match", func(t *testing.T, _ *installation, c *Config) {
		serve(t, c, time.Now())
		other, err := localca.Ensure(t.TempDir(), time.Now())
		testenv.Must(t, err)
		c.TLSKeyFile = other.ServerKey
	}, Finding{Check: "certificate", Level: Fail, Seen: "private key does not match"}},
	{"unknown authority", func(t *testing.T, _ *installation, c *Config) {
		serve(t, c, time.Now())
		other, err := localca.Ensure(t.TempDir(), time.Now())
		testenv.Must(t, err)
		c.CAFile = other.CA
	}, Finding{Check: "certificate", Level: Fail, Seen: "unknown authority"}},
	{"certificate that is not there", func(t *testing.T, _ *installation, c *Config) { c.TLSCertFile = filepath.Join(t.TempDir(), "nowhere") },
		Finding{Check: "certificate", Level: Fail, Seen: "no such file"}},
}

// serve names a certificate issued at a given time.
func serve(t *testing.T, c *Config, issued time.Time) {
	files, err := localca.Ensure(t.TempDir(), issued)
	testenv.Must(t, err)
	c.TLSCertFile, c.TLSKeyFile, c.CAFile = files.Server, files.ServerKey, files.CA
}

// Folders of the data directory are looked at once, unless they are on
// file systems of their own.
func TestOneLookForEachFileSystem(t *testing.T) {
	dir := t.TempDir()
	testenv.Must(t, os.Mkdir(filepath.Join(dir, "kafka"), 0o700))
	c := &hostChecker{checker: newChecker(Config{FolderConfig: FolderConfig{DataDir: dir}})}
	c.directories()
	if n := len(c.report.Findings); n != 1 {
		t.Errorf("%d looks: %+v", n, c.report.Findings)
	}
}

// A closed directory protects its files from other users.
func TestPassable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "closed", "open")
	testenv.Must(t, os.MkdirAll(dir, 0o755))
	testenv.Must(t, os.Chmod(filepath.Dir(dir), 0o700))
	if passable(dir) {
		t.Error("others pass through a directory that is closed")
	}
	if !passable("/") {
		t.Error("nobody passes through the root")
	}
}

// alter changes the role until the test ends.
func alter(change, back string) func(*testing.T, *installation, *Config) {
	return func(t *testing.T, i *installation, _ *Config) {
		postgrestest.Superuser(t, `ALTER ROLE `+i.role(t)+` `+change)
		t.Cleanup(func() { postgrestest.Superuser(t, `ALTER ROLE `+i.role(t)+` `+back) })
	}
}

var limitFaults = []fault{
	{"role with few connections", alter(`CONNECTION LIMIT 7`, `CONNECTION LIMIT -1`),
		Finding{Check: "role", Subject: "ingest", Level: Fail, Seen: "may open 7 connections"}},
	{"password that ends", alter(`VALID UNTIL 'tomorrow'`, `VALID UNTIL 'infinity'`),
		Finding{Check: "role", Subject: "tenants", Level: Warn, Seen: "ends at"}},
	{"role that may only read", alter(`SET default_transaction_read_only = on`, `RESET default_transaction_read_only`),
		Finding{Check: "role", Subject: "ledger", Level: Fail, Seen: "can write nothing"}},
	{"role whose commits may be lost", alter(`SET synchronous_commit = off`, `RESET synchronous_commit`),
		Finding{Check: "role", Subject: "ledger", Level: Fail, Seen: "is lost where the server fails"}},
	{"role whose statements are cancelled", alter(`SET statement_timeout = '20ms'`, `RESET statement_timeout`),
		Finding{Check: "role", Subject: "grouping", Level: Warn, Seen: "what takes longer is cancelled"}},
}
