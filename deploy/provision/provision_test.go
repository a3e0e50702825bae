package provision

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/testenv"
)

// What is missing is made, and what is there stays.
func TestEnsure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	first := ensured(t, dir)
	if len(first) != 4+len(Databases)+1 {
		t.Errorf("made %d secrets", len(first))
	}
	if !strings.HasPrefix(first[OperatorToken], "weirsvc_") || len(strings.TrimSpace(first[OperatorToken])) != len("weirsvc_")+48 {
		t.Error("that is no operator's token")
	}
	values := map[string]string{}
	for name, content := range first {
		if other, twice := values[content]; twice {
			t.Errorf("%s is the same as %s", name, other)
		}
		values[content] = name
	}
	must(t, os.Remove(filepath.Join(dir, OperatorToken)))
	second := ensured(t, dir)
	for name := range first {
		if same := first[name] == second[name]; same == (name == OperatorToken) {
			t.Errorf("%s: stayed: %t", name, same)
		}
	}
}

// Only the owner of the directory comes to the secrets in it.
func TestClosed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	ensured(t, dir)
	for path, want := range map[string]os.FileMode{
		dir: 0o700, filepath.Join(dir, OperatorToken): 0o644, localca.In(filepath.Join(dir, Certificates)).ServerKey: 0o644,
		localca.In(filepath.Join(dir, Certificates)).CAKey: 0o600,
	} {
		info, err := os.Stat(path)
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s is %o instead of %o", path, got, want)
		}
	}
}

// An address that somebody has spoiled is reported without being shown.
func TestSpoiledAddress(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	ensured(t, dir)
	for _, text := range []string{"postgres://ledger@postgres/ledger", "postgres://ledger:hunter2@postgres/", "postgres://ledger:hunter2@%zz/x"} {
		must(t, os.WriteFile(filepath.Join(dir, DatabaseURL("ledger")), []byte(text), 0o600))
		err := Ensure(dir, "postgres", time.Now())
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "ledger_database_url") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A role and a database that are there are not made again, and
// no password ends its quotes.
func TestRole(t *testing.T) {
	address, err := url.Parse(testenv.Postgres(t))
	must(t, err)
	own := *address
	name, _ := strings.CutPrefix(address.Path, "/")
	file := filepath.Join(t.TempDir(), "url")
	own.User = url.UserPassword(address.User.Username(), `it's "quoted"`)
	must(t, os.WriteFile(file, []byte(own.String()), 0o600))
	script, err := role(file)
	must(t, err)
	if !strings.Contains(script, `PASSWORD 'it''s "quoted"';`) || !strings.Contains(script, `'CREATE DATABASE "`+name+`" OWNER`) {
		t.Errorf("script of %s:\n%s", name, script)
	}
	conn, err := pgx.Connect(t.Context(), address.String())
	must(t, err)
	defer conn.Close(t.Context())
	for statement := range strings.Lines(script) {
		if question, asks := strings.CutSuffix(strings.TrimSpace(statement), `\gexec`); asks {
			rows, err := conn.Query(t.Context(), question)
			must(t, err)
			found, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil || len(found) != 0 { // both are there
				t.Errorf("%s: %q, %v", question, found, err)
			}
		}
	}
}

func ensured(t *testing.T, dir string) map[string]string {
	t.Helper()
	must(t, Ensure(dir, "postgres", time.Now(), "gateway"))
	files, err := filepath.Glob(filepath.Join(dir, "*[a-z]"))
	must(t, err)
	made := map[string]string{}
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && filepath.Base(file) != Roles {
			made[filepath.Base(file)] = string(content)
		} else if err == nil {
			made[Roles] = "the script"
		}
	}
	return made
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
