package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// restartWithin limits the restart of a stopped installation, on a
// machine busy with other tests.
const restartWithin = 30 * time.Second

// Everything in one process, started three times, the third without the
// schemas of the modules that consume the log. The printed commands work as
// pasted, and its secrets lie in one file. A stopped installation finds
// everything unchanged, demo organization included, and is back within ten
// seconds. Derived data can be rebuilt: the next start reads the log again,
// and balance, groups and entries are as before.
func TestRestart(t *testing.T) {
	r := newRepeated(t)
	r.run(func(running *programs.Process) { r.seen = commandLine(t, running) })
	t.Run("secrets", r.secretsLieInOneFile)
	if took := r.run(func(*programs.Process) {}); took > restartWithin {
		t.Errorf("back after %s, want %s", took, restartWithin)
	}
	conn := dial(t, r.variables["WEIR_DATABASE_URL"])
	for _, schema := range []string{"grouping", "ingest", "ledger"} {
		_, err := conn.Exec(t.Context(), "DROP SCHEMA "+schema+" CASCADE")
		testenv.Must(t, err)
	}
	r.run(func(running *programs.Process) {
		pasted(t, running, hint{"Post a batch:", `"processed":2`}, hint{"Read the balance:", `"consumed":`},
			hint{"List the error groups:", `"TypeError`}, hint{"Read the logs, newest first:", `cart opened`})
	})
}

// A repeated installation is one that is started again and again.
type repeated struct {
	t         *testing.T
	program   string
	variables map[string]string
	first     allinone.DevEnv
	maker     *maker
	sent      *history
	output    string // of the last process
	seen      []byte // of its arguments
}

func newRepeated(t *testing.T) *repeated {
	t.Helper()
	return &repeated{
		t: t, program: programs.Build(t, "deploy/cmd/weir"), maker: &maker{mark: "restarted"}, sent: &history{},
		variables: map[string]string{"WEIR_LISTEN": freeAddress(t), "WEIR_DATA_DIR": t.TempDir(), "WEIR_DATABASE_URL": postgrestest.URL(t), "WEIR_LOG_LEVEL": "debug"},
	}
}

// run starts it, posts, verifies all that was ever posted, does something
// and stops it. It returns how long the start took.
func (r *repeated) run(then func(running *programs.Process)) (took time.Duration) {
	r.t.Helper()
	begun := time.Now()
	running := programs.Launch(r.t, r.program, r.variables, "run")
	env := awaitEnv(r.t, running, r.variables["WEIR_DATA_DIR"])
	took = time.Since(begun)
	if r.first == (allinone.DevEnv{}) {
		r.first = env
	} else if env != r.first {
		r.t.Errorf("after the restart: %+v, before: %+v", env, r.first)
	}
	in := connect(r.t, env.BaseURL, env.CAFile, env.OperatorToken)
	demo := tenant{organization: env.Organization, project: env.Project, key: env.APIKey, billing: env.ServiceToken}
	entries := r.maker.some(50)
	deliver(r.t, r.t.Context(), in, demo, entries[0].text, plainly(body(texts(entries)...)), entries, r.sent)
	verify(r.t, r.t.Context(), in, demo, r.sent)
	then(running)
	if err := running.Stop(); err != nil {
		r.t.Fatalf("did not stop in order: %v\n%s", err, running.Output)
	}
	r.output = running.Output.String()
	return took
}

// awaitEnv waits until the process has logged that it is ready, and
// reads its dev.env.
func awaitEnv(t *testing.T, running *programs.Process, dataDir string) (env allinone.DevEnv) {
	t.Helper()
	testenv.Eventually(t, func() (err error) {
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

// Without a demo organization other commands are printed, which work as well.
func TestPrintedCommands(t *testing.T) {
	dataDir := t.TempDir()
	running := programs.Launch(t, programs.Build(t, "deploy/cmd/weir"), map[string]string{
		"WEIR_LISTEN": "localhost:0", "WEIR_DATA_DIR": dataDir, "WEIR_DATABASE_URL": postgrestest.URL(t), "WEIR_NO_DEMO": "true",
	}, "run")
	awaitEnv(t, running, dataDir)
	pasted(t, running, hint{"List the organizations:", `"items":[]`}, hint{"Create an organization:", `"name":"Acme"`},
		hint{"Read what else there is to call:", `"openapi":"3.1.0"`})
	if err := running.Stop(); err != nil {
		t.Errorf("did not stop in order: %v", err)
	}
}

// pasted pastes into a shell what a process prints: these commands, and no others.
func pasted(t *testing.T, running *programs.Process, hints ...hint) {
	t.Helper()
	provideCurl(t)
	testenv.Eventually(t, func() error { // they follow the line that it is ready
		if commands := strings.Count(running.Output.String(), "curl "); commands != len(hints) {
			return fmt.Errorf("%d commands are printed, want %d:\n%s", commands, len(hints), running.Output)
		}
		return nil
	})
	for _, h := range hints {
		command, want := printed(t, running.Output.String(), h.title), h.want
		testenv.Eventually(t, func() error {
			out, err := exec.Command("sh", "-c", command).Output()
			if !strings.Contains(string(out), want) {
				return fmt.Errorf("%s\nanswers %s, want %s in it: %w", command, out, want, orNothing(err))
			}
			return nil
		})
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

// An installation's secrets are only in dev.env, and the broker's
// password only in a file of the broker, which only their owner can
// read: in no other file of the data directory, no output, no log, and
// nothing that others see of the process.
func (r *repeated) secretsLieInOneFile(t *testing.T) {
	dataDir, broker := r.variables["WEIR_DATA_DIR"], filepath.Join("kafka", "password")
	password, err := os.ReadFile(filepath.Join(dataDir, broker))
	testenv.Must(t, err)
	secrets := map[string]string{strings.TrimSpace(string(password)): broker}
	for _, secret := range []string{r.first.APIKey, r.first.ServiceToken, r.first.OperatorToken, r.first.ConsolePassword, r.first.WebhookKeys} {
		secrets[secret] = allinone.EnvFile
	}
	files := filesOf(t, dataDir)
	for secret, place := range secrets {
		if info, err := os.Stat(filepath.Join(dataDir, place)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", place, info.Mode(), err)
		}
		if secret == "" || !bytes.Contains(files[place], []byte(secret)) {
			t.Fatalf("%s does not have %q, so nothing is proved of it", place, secret)
		}
		if strings.Contains(r.output, secret) || bytes.Contains(r.seen, []byte(secret)) {
			t.Errorf("a secret of %s is printed, or an argument", place)
		}
		for name, content := range files {
			if name != place && bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s has a secret", name)
			}
		}
	}
}

// commandLine returns what others see of a process.
func commandLine(t *testing.T, running *programs.Process) []byte {
	t.Helper()
	seen, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(running.ID()), "cmdline"))
	testenv.Must(t, err)
	return seen
}

// filesOf returns the files below a directory, by their paths in it.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	testenv.Must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		testenv.Must(t, err)
		files[name], err = os.ReadFile(path)
		return err
	}))
	for _, want := range []string{"kafka", "state"} {
		if found, _ := filepath.Glob(filepath.Join(dir, want, "*")); len(found) == 0 {
			t.Errorf("there is nothing in %s", want)
		}
	}
	return files
}
