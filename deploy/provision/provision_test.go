package provision

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/acls"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/testenv"
)

// Missing files are created, and existing ones stay.
func TestEnsure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	first := ensured(t, dir)
	if len(first) != 7+len(acls.Programs())+2*len(Databases)+1 {
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
	testenv.Must(t, os.Remove(filepath.Join(dir, OperatorToken)))
	second := ensured(t, dir)
	for name := range first {
		if same := first[name] == second[name]; same == (name == OperatorToken) {
			t.Errorf("%s: stayed: %t", name, same)
		}
	}
}

// Only the owner of the directory can read its secrets.
func TestClosed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	ensured(t, dir)
	for path, want := range map[string]os.FileMode{
		dir: 0o700, filepath.Join(dir, OperatorToken): 0o644, localca.In(filepath.Join(dir, Certificates)).ServerKey: 0o644,
		localca.In(filepath.Join(dir, Certificates)).CAKey: 0o600,
	} {
		info, err := os.Stat(path)
		testenv.Must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s is %o instead of %o", path, got, want)
		}
	}
}

// A damaged address is reported without being shown.
func TestDamagedAddress(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	ensured(t, dir)
	for _, text := range []string{"postgres://ledger@postgres/ledger", "postgres://ledger:hunter2@postgres/", "postgres://ledger:hunter2@%zz/x"} {
		testenv.Must(t, os.WriteFile(filepath.Join(dir, DatabaseURL("ledger")), []byte(text), 0o600))
		err := Ensure(dir, "postgres", time.Now())
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "ledger_database_url") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The script has no password, and all roles differ.
func TestRoles(t *testing.T) {
	dir := t.TempDir()
	owner, serving := filepath.Join(dir, "owner"), filepath.Join(dir, "serving")
	testenv.Must(t, os.WriteFile(owner, []byte("postgres://ledger_owner:secret@postgres/ledger"), 0o600))
	testenv.Must(t, os.WriteFile(serving, []byte(`postgres://ledger:it's%20%22quoted%22@postgres/ledger`), 0o600))
	script, err := roles(owner, serving)
	testenv.Must(t, err)
	if strings.Contains(script, "secret") || strings.Contains(script, "quoted") {
		t.Errorf("a password is in the script:\n%s", script)
	}
	for _, line := range []string{`ALTER ROLE "ledger" PASSWORD 'SCRAM-SHA-256$4096:`, `REASSIGN OWNED BY "ledger" TO "ledger_owner";`} {
		if !strings.Contains(script, line) {
			t.Errorf("without %s:\n%s", line, script)
		}
	}
	if _, err := roles(serving, serving); err == nil || !strings.Contains(err.Error(), "two roles") {
		t.Errorf("of one role: %v", err)
	}
}

// The verifier is that of the standard's example (RFC 7677).
func TestVerifier(t *testing.T) {
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	testenv.Must(t, err)
	got, err := salted("pencil", salt)
	testenv.Must(t, err)
	const want = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	if got != want {
		t.Errorf("%s instead of %s", got, want)
	}
	if _, err := salted("bell\a", salt); err == nil {
		t.Error("a password that no client can send has a verifier")
	}
}

func ensured(t *testing.T, dir string) map[string]string {
	t.Helper()
	testenv.Must(t, Ensure(dir, "postgres", time.Now(), "gateway"))
	files, err := filepath.Glob(filepath.Join(dir, "*[a-z]"))
	testenv.Must(t, err)
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
