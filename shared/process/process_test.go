package process

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// A process at rest collects garbage sooner than under load.
func TestCollectionFollowsLoad(t *testing.T) {
	percent := debug.SetGCPercent(percentUnderLoad)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	var c collector
	for i, step := range []struct {
		allocated uint64
		want      int
	}{{restBytes, percentUnderLoad}, {restBytes + 1, percentAtRest}, {restBytes + 2, percentAtRest}, {3 * restBytes, percentUnderLoad}} {
		c.follow(step.allocated)
		got := debug.SetGCPercent(percentUnderLoad)
		debug.SetGCPercent(got)
		if got != step.want {
			t.Errorf("step %d: %d percent, want %d", i, got, step.want)
		}
	}
}

func TestAnEndIsOneLine(t *testing.T) {
	tried := errors.New("failed to connect to `user=u`:\n\t127.0.0.1:1: refused\n\t[::1]:1: refused; Start PostgreSQL.")
	for want, err := range map[string]error{
		"weir-ledger: failed to connect to `user=u`: 127.0.0.1:1: refused [::1]:1: refused; Start PostgreSQL.": tried,
		"weir-ledger: WEIR_A is 1. WEIR_B is 2.": errors.Join(errors.New("WEIR_A is 1."), errors.New("WEIR_B is 2.")),
	} {
		if got := inOneLine("weir-ledger", err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A program's version is the linker's, else its commit.
func TestVersion(t *testing.T) {
	committed := map[string]string{"vcs.revision": "ca80d46", "vcs.modified": "false"}
	changed := map[string]string{"vcs.revision": "ca80d46", "vcs.modified": "true"}
	for _, c := range []struct {
		version  string
		settings map[string]string
		want     string
	}{
		{"v1.4.0", changed, "v1.4.0 (go"},
		{"", committed, "ca80d46 (go"},
		{"", changed, "ca80d46-dirty (go"},
		{"", nil, "unversioned (go"},
	} {
		var out strings.Builder
		if err := writeVersion(&out, c.version, c.settings); err != nil || !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("%q, %v: printed %q, %v", c.version, c.settings, out.String(), err)
		}
	}
}

// The health check succeeds only if the process can serve, and else
// passes on the reason.
func TestReady(t *testing.T) {
	var status int
	var body string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	check := ready{Listen: server.Listener.Addr().String(), Timeout: 30 * time.Second}
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{200, `{"status":"ready"}`, ""},
		{500, `{"detail":"Not ready yet: database."}`, "500 Internal Server Error: Not ready yet: database."},
		{500, `<html>`, "500 Internal Server Error: no reason given"},
	} {
		status, body = c.status, c.body
		err := check.Run(t.Context())
		if got := text(err); got != c.want {
			t.Errorf("%d %s: %q", c.status, c.body, got)
		}
	}
	server.Close()
	if err := check.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "no answer: ") {
		t.Errorf("nobody listens: %v", err)
	}
}

// A listener on every address is asked on this machine.
func TestLocal(t *testing.T) {
	for listen, want := range map[string]string{
		":8443": "localhost:8443", "0.0.0.0:1": "localhost:1", "[::]:1": "localhost:1", "10.0.0.7:8443": "10.0.0.7:8443", "weir.example:1": "weir.example:1",
	} {
		if got, err := local(listen); got != want || err != nil {
			t.Errorf("%s: %q, %v", listen, got, err)
		}
	}
	if _, err := local("8443"); err == nil {
		t.Error("an address without a colon was taken")
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

type secretive struct {
	Token httpapi.Secret `help:"The token." env:"WEIR_TEST_TOKEN" required:""`
	Name  string         `help:"A name." env:"WEIR_TEST_NAME"`
}

// A secret comes from its variable, or from the file of its other
// variable, and from no other setting's.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	full, empty := filepath.Join(dir, "token"), filepath.Join(dir, "empty")
	write(t, full, " s3cret\n")
	write(t, empty, "\n")
	for name, c := range map[string]struct {
		environment map[string]string
		args        []string
		want, err   string
	}{
		"in a file":                    {map[string]string{"WEIR_TEST_TOKEN_FILE": full}, nil, "s3cret", ""},
		"in the variable":              {map[string]string{"WEIR_TEST_TOKEN": "other"}, nil, "other", ""},
		"as a flag":                    {map[string]string{"WEIR_TEST_TOKEN_FILE": full}, []string{"--token=flag"}, "flag", ""},
		"in both":                      {map[string]string{"WEIR_TEST_TOKEN_FILE": full, "WEIR_TEST_TOKEN": "other"}, nil, "", "set one of WEIR_TEST_TOKEN and WEIR_TEST_TOKEN_FILE"},
		"nowhere":                      {nil, nil, "", "--token"},
		"in a file that is empty":      {map[string]string{"WEIR_TEST_TOKEN_FILE": empty}, nil, "", "is empty"},
		"in a file that is not there":  {map[string]string{"WEIR_TEST_TOKEN_FILE": full + "x"}, nil, "", "cannot read WEIR_TEST_TOKEN_FILE"},
		"beside a file of no secret":   {map[string]string{"WEIR_TEST_TOKEN": "other", "WEIR_TEST_NAME_FILE": full}, nil, "other", ""},
		"not shown by what is refused": {map[string]string{"WEIR_TEST_TOKEN": "other"}, []string{"--unknown"}, "", "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.environment {
				t.Setenv(variable, value)
			}
			var got secretive
			parser, err := kong.New(&got, SecretFiles())
			testenv.Must(t, err)
			_, err = parser.Parse(c.args)
			if message := text(err); (c.err == "") != (err == nil) || !strings.Contains(message, c.err) || strings.Contains(message, "s3cret") || strings.Contains(message, "other") {
				t.Fatalf("error %q", message)
			}
			if err == nil && (got.Token.Reveal() != c.want || got.Name != "") {
				t.Errorf("got %q and %q", got.Token.Reveal(), got.Name)
			}
		})
	}
}

// Only a secret's help names the variable for its file.
func TestSecretHelp(t *testing.T) {
	var out bytes.Buffer
	parser, err := kong.New(&secretive{}, SecretFiles(), kong.Writers(&out, &out), kong.Exit(func(int) {}))
	testenv.Must(t, err)
	_, _ = parser.Parse([]string{"--help"})
	help := strings.Join(strings.Fields(out.String()), " ")
	if !strings.Contains(help, "The token ($WEIR_TEST_TOKEN, or a file that holds it in $WEIR_TEST_TOKEN_FILE).") || strings.Contains(help, "NAME_FILE") {
		t.Error(help)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	testenv.Must(t, os.WriteFile(name, []byte(content), 0o600))
}
