//go:build composed

package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/docs/docstest"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/deploy/provision"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// A console is a shell in the root of the repository, for the
// installation of `make up`.
type console struct {
	t       *testing.T
	path    string
	secrets string
	page    *strings.Replacer // replaces a page's names by this project's
}

func newConsole(t *testing.T) *console {
	t.Helper()
	havePlugin(t)
	project, secrets := os.Getenv("COMPOSE_PROJECT_NAME"), os.Getenv("WEIR_SECRETS")
	return &console{
		t: t, path: filepath.Dir(programs.Build(t, "deploy/e2e/curl")) + ":" + os.Getenv("PATH"), secrets: secrets,
		page: strings.NewReplacer("weir-topics-1", project+"-topics-1", "weir-ledger-1", project+"-ledger-1", "weir_data", project+"_data",
			"$PWD/deploy/compose/secrets", secrets, "deploy/compose/secrets", secrets),
	}
}

// havePlugin makes the engine find the compiled Compose if it has none,
// as the page says.
func havePlugin(t *testing.T) {
	t.Helper()
	if exec.CommandContext(t.Context(), "docker", "compose", "version").Run() == nil {
		return
	}
	compiled, err := filepath.Abs("../../bin/docker-compose")
	testenv.Must(t, err)
	config := t.TempDir()
	testenv.Must(t, os.Mkdir(filepath.Join(config, "cli-plugins"), 0o700))
	testenv.Must(t, os.Symlink(compiled, filepath.Join(config, "cli-plugins", "docker-compose")))
	t.Setenv("DOCKER_CONFIG", config)
}

// on returns the console for a part of the test.
func (o console) on(t *testing.T) *console {
	o.t = t
	return &o
}

// connect returns a client of the gateway.
func (o *console) connect() installation {
	o.t.Helper()
	token, err := os.ReadFile(filepath.Join(o.secrets, provision.OperatorToken))
	testenv.Must(o.t, err)
	authority := localca.In(filepath.Join(o.secrets, provision.Certificates)).CA
	return connect(o.t, os.Getenv("WEIR_BASE_URL"), authority, strings.TrimSpace(string(token)))
}

// follow runs the commands in a section of a page, except those that
// stop the installation: make does that at the end.
func (o *console) follow(page, section string) {
	o.t.Helper()
	for _, block := range docstest.BlocksOf(o.t, page, section) {
		if !strings.Contains(block, "make down") {
			o.run(block)
		}
	}
}

// run runs commands, none of which may fail, and returns their output.
func (o *console) run(script string) string {
	o.t.Helper()
	shell := exec.CommandContext(o.t.Context(), "bash", "-c", "set -euo pipefail\n"+o.page.Replace(script))
	shell.Dir, shell.Env = filepath.Join("..", ".."), append(os.Environ(), "PATH="+o.path)
	said, err := shell.CombinedOutput()
	if err != nil {
		o.t.Fatalf("%s\n%v\n%s", script, err, said)
	}
	return string(said)
}

// bearing lets the shell continue if grep finds nothing, and if only
// the beginning of an output is read.
const bearing = `grep() { command grep "$@" || [ $? = 1 ]; }
head() { command head "$@"; cat >/dev/null; }
`

// notHere are commands of runbooks that need what not every machine has.
var notHere = map[string]string{
	"timedatectl\n": "systemd",
	`docker run --rm --network weir_outside --entrypoint getent "$(compose images --quiet postgres)" hosts example.com` + "\n": "a way out",
}

// shows is the output of some commands, by page: each function at the
// beginning of the runbooks is among them.
var shows = map[string]string{
	"WeirNotScraped.md": "ledger:9464", "WeirTargetDown.md": `"service":"weir-ledger"`, "WeirOutboxBehind.md": "epoch",
	"WeirRecordsParked.md": parkedHere, "WeirBooksViolated.md": "every invariant holds",
}

// followRunbooks runs all commands of each, after a record was parked.
func (o *console) followRunbooks() {
	o.t.Helper()
	helpers := docstest.BlocksOf(o.t, "runbooks/README.md", "Before you begin")[0] + bearing
	o.run(helpers + setAside)
	id := regexp.MustCompile(`(?m)^(\S+) .*` + parkedHere).FindStringSubmatch(o.run(helpers + "parked ledger list"))
	if id == nil {
		o.t.Fatal("no record was set aside")
	}
	unmet := maps.Clone(notHere)
	for name, page := range runbooks(o.t) {
		for command := range notHere {
			if before := page; strings.Contains(before, command) {
				page = strings.ReplaceAll(before, command, "")
				delete(unmet, command)
			}
		}
		o.t.Run(name, func(t *testing.T) {
			if shown := o.on(t).run(helpers + strings.ReplaceAll(page, "RECORD", id[1])); !strings.Contains(shown, shows[name]) {
				t.Errorf("the commands show no %q:\n%s", shows[name], shown)
			}
		})
	}
	if len(unmet) > 0 {
		o.t.Errorf("no runbook has %q", slices.Collect(maps.Keys(unmet)))
	}
}

// setAside parks a record that can't be applied.
const (
	parkedHere = "of no kind that there is"
	setAside   = `sql ledger "INSERT INTO bus_parked (organization, group_name, topic, partition, record_offset, record_time, header_names, header_values, reason)
	VALUES ('*', 'ledger.quota', 'weir.logs.v1', 0, 0, now(), '{}', '{}', '` + parkedHere + `')"`
)

// runbooks returns each one's commands, by file.
func runbooks(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../docs/runbooks/Weir*.md")
	testenv.Must(t, err)
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		testenv.Must(t, err)
		all[filepath.Base(file)] = strings.Join(docstest.Blocks(string(text)), "")
	}
	return all
}
