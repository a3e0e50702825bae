package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/testenv"
)

// restartWithin is how soon a stopped installation is back.
const restartWithin = 10 * time.Second

// A stopped installation finds everything as it was, demo organization included, and is back within ten seconds.
func TestRestart(t *testing.T) {
	twice(t, func(string) {})
}

// What is derived can be rebuilt: without the schemas of the three modules that live by the log, the next start reads it
// again, and balance, groups and entries are what they were.
func TestRebuilt(t *testing.T) {
	twice(t, func(database string) {
		conn, err := pgx.Connect(t.Context(), database)
		must(t, err)
		defer conn.Close(t.Context())
		for _, schema := range []string{"grouping", "ingest", "ledger"} {
			_, err := conn.Exec(t.Context(), "DROP SCHEMA "+schema+" CASCADE")
			must(t, err)
		}
	})
}

// twice runs an installation, posts, verifies and stops it, calls between with its database, and does it all again: the second
// time everything of the first must still be there.
func twice(t *testing.T, between func(database string)) {
	t.Helper()
	program, dataDir, database := build(t, "deploy/cmd/weir"), t.TempDir(), testenv.Postgres(t)
	variables := map[string]string{"WEIR_LISTEN": freeAddress(t), "WEIR_DATA_DIR": dataDir, "WEIR_DATABASE_URL": database}
	var first allinone.DevEnv
	m, h := &maker{mark: "restarted"}, &history{}
	for round := range 2 {
		begun := time.Now()
		running := launch(t, program, variables, "run")
		env := awaitEnv(t, running, dataDir)
		if took := time.Since(begun); round > 0 && took > restartWithin {
			t.Errorf("back after %s, want %s", took, restartWithin)
		}
		in := connect(t, env.BaseURL, env.CAFile, env.OperatorToken)
		if round == 0 {
			first = env
		} else if env != first {
			t.Errorf("after the restart: %+v, before: %+v", env, first)
		}
		demo := tenant{organization: env.Organization, project: env.Project, key: env.APIKey, billing: env.ServiceToken}
		entries := m.some(50)
		deliver(t, t.Context(), in, demo, fmt.Sprint("round ", round), plainly(body(texts(entries)...)), entries, h)
		verify(t, t.Context(), in, demo, h)
		if err := running.stop(); err != nil {
			t.Fatalf("did not stop in order: %v\n%s", err, running.output)
		}
		if round == 0 {
			between(database)
		}
	}
}

// awaitEnv waits until the process has said that it is ready, and reads what it left for clients.
func awaitEnv(t *testing.T, running *process, dataDir string) (env allinone.DevEnv) {
	t.Helper()
	testenv.Eventually(t, startLimit, func() (err error) {
		if !strings.Contains(running.output.String(), "Weir is ready") {
			return fmt.Errorf("not ready: %s", running.output)
		}
		env, err = allinone.ReadDevEnv(envFile(dataDir))
		return err
	})
	return env
}

// The commands that are printed work as they are pasted.
func TestPrintedCommands(t *testing.T) {
	dataDir := t.TempDir()
	running := launch(t, build(t, "deploy/cmd/weir"), map[string]string{
		"WEIR_LISTEN": "localhost:0", "WEIR_DATA_DIR": dataDir, "WEIR_DATABASE_URL": testenv.Postgres(t),
	}, "run")
	awaitEnv(t, running, dataDir)
	provideCurl(t)
	for _, want := range []string{`"processed":2`, `"consumed":`, `"TypeError`, `cart opened`} {
		command := printed(t, running.output.String(), want)
		testenv.Eventually(t, viewTimeout, func() error {
			out, err := exec.Command("sh", "-c", command).Output()
			if !strings.Contains(string(out), want) {
				return fmt.Errorf("%s\nanswers %s, want %s in it: %w", command, out, want, orNothing(err))
			}
			return nil
		})
	}
	if err := running.stop(); err != nil {
		t.Errorf("did not stop in order: %v", err)
	}
}

// provideCurl puts a stand-in on the path where the machine has no curl: the tests ask for Go, make and git alone.
func provideCurl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("no curl on this machine: a stand-in runs the printed commands")
		t.Setenv("PATH", filepath.Dir(build(t, "deploy/e2e/curl"))+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
}

// printed finds the command whose answer has want in it.
func printed(t *testing.T, output, want string) string {
	t.Helper()
	titles := map[string]string{`"processed":2`: "Post a batch:", `"consumed":`: "Read the balance:", `"TypeError`: "List the error groups:", `cart opened`: "Read the logs, newest first:"}
	_, rest, found := strings.Cut(output, titles[want]+"\n")
	command, _, ended := strings.Cut(rest, "\n\n")
	if !found || !ended {
		t.Fatalf("no command under %q in\n%s", titles[want], output)
	}
	return command
}
