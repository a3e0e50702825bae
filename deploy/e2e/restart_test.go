package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// restartWithin limits the restart of a stopped installation, on a
// machine busy with other tests.
const restartWithin = 30 * time.Second

// A stopped installation finds everything unchanged, demo organization
// included, and is back within ten seconds.
func TestRestart(t *testing.T) {
	twice(t, func(string) {})
}

// Derived data can be rebuilt: without the schemas of the three modules
// that consume the log, the next start reads it again, and balance,
// groups and entries are as before.
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

// twice runs an installation, posts, verifies and stops it, calls
// between with its database, and does it all again: the second time
// everything of the first must still be there.
func twice(t *testing.T, between func(database string)) {
	t.Helper()
	program, dataDir, database := programs.Build(t, "deploy/cmd/weir"), t.TempDir(), postgrestest.URL(t)
	variables := map[string]string{"WEIR_LISTEN": freeAddress(t), "WEIR_DATA_DIR": dataDir, "WEIR_DATABASE_URL": database}
	var first allinone.DevEnv
	m, h := &maker{mark: "restarted"}, &history{}
	for round := range 2 {
		begun := time.Now()
		running := programs.Launch(t, program, variables, "run")
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
		if err := running.Stop(); err != nil {
			t.Fatalf("did not stop in order: %v\n%s", err, running.Output)
		}
		if round == 0 {
			between(database)
		}
	}
}

// awaitEnv waits until the process has logged that it is ready, and
// reads its dev.env.
func awaitEnv(t *testing.T, running *programs.Process, dataDir string) (env allinone.DevEnv) {
	t.Helper()
	testenv.Eventually(t, startLimit, func() (err error) {
		if !strings.Contains(running.Output.String(), "Weir is ready") {
			return fmt.Errorf("not ready: %s", running.Output)
		}
		env, err = allinone.ReadDevEnv(envFile(dataDir))
		return err
	})
	return env
}

// A hint is a command printed under a title, with a part of its answer.
type hint struct{ title, want string }

// The printed commands work as pasted, with and without a demo organization.
func TestPrintedCommands(t *testing.T) {
	t.Run("with a demo organization", func(t *testing.T) {
		paste(t, nil, hint{"Post a batch:", `"processed":2`}, hint{"Read the balance:", `"consumed":`},
			hint{"List the error groups:", `"TypeError`}, hint{"Read the logs, newest first:", `cart opened`})
	})
	t.Run("without", func(t *testing.T) {
		paste(t, map[string]string{"WEIR_NO_DEMO": "true"}, hint{"List the organizations:", `"items":[]`},
			hint{"Create an organization:", `"name":"Acme"`}, hint{"Read what else there is to call:", `"openapi":"3.1.0"`})
	})
}

// paste starts everything in one process and pastes into a shell what that
// prints: these commands, and no others.
func paste(t *testing.T, env map[string]string, hints ...hint) {
	t.Helper()
	dataDir := t.TempDir()
	given := map[string]string{"WEIR_LISTEN": "localhost:0", "WEIR_DATA_DIR": dataDir, "WEIR_DATABASE_URL": postgrestest.URL(t)}
	maps.Copy(given, env)
	running := programs.Launch(t, programs.Build(t, "deploy/cmd/weir"), given, "run")
	awaitEnv(t, running, dataDir)
	provideCurl(t)
	testenv.Eventually(t, viewTimeout, func() error { // they follow the line that it is ready
		if commands := strings.Count(running.Output.String(), "curl "); commands != len(hints) {
			return fmt.Errorf("%d commands are printed, want %d:\n%s", commands, len(hints), running.Output)
		}
		return nil
	})
	for _, h := range hints {
		command, want := printed(t, running.Output.String(), h.title), h.want
		testenv.Eventually(t, viewTimeout, func() error {
			out, err := exec.Command("sh", "-c", command).Output()
			if !strings.Contains(string(out), want) {
				return fmt.Errorf("%s\nanswers %s, want %s in it: %w", command, out, want, orNothing(err))
			}
			return nil
		})
	}
	if err := running.Stop(); err != nil {
		t.Errorf("did not stop in order: %v", err)
	}
}

// provideCurl puts a stand-in on the path where the machine has no curl:
// the tests ask for Go, make and git alone.
func provideCurl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("no curl on this machine: a stand-in runs the printed commands")
		t.Setenv("PATH", filepath.Dir(programs.Build(t, "deploy/e2e/curl"))+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
}

// printed finds the command under a title.
func printed(t *testing.T, output, title string) string {
	t.Helper()
	_, rest, found := strings.Cut(output, title+"\n")
	command, _, ended := strings.Cut(rest, "\n\n")
	if !found || !ended {
		t.Fatalf("no command under %q in\n%s", title, output)
	}
	return command
}
