package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/continuous"
	"github.com/weirlog/weir/deploy/docs/docstest"
	"github.com/weirlog/weir/deploy/provision"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/testenv/programs"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

// An operator follows the pages, command by command: installs the
// services, observes them, prepares an upgrade, makes backups, loses a
// module's tables and then the server, and brings them back.
func TestOperated(t *testing.T) {
	kafkatest.Parallel(t)
	o := newOperator(t, strings.Join(kafkatest.Brokers(t), ","))
	o.follow("observe.md", "Traces")
	o.install()
	in := o.connect()
	to, m, sent := in.tenant(t, t.Context(), "kept", "scale"), &maker{mark: "kept"}, &history{}
	entries := m.some(30)
	deliver(t, t.Context(), in, to, "once", plainly(body(texts(entries)...)), entries, sent)
	verify(t, t.Context(), in, to, sent)
	o.observe()
	o.follow("upgrade.md", "Before")
	o.follow("upgrade.md", "The order")
	o.backUp()
	o.follow("backup.md", "Is there one?")
	copies := o.blocks("backup.md", "Copies of modules")
	o.run(copies[0])
	o.stop()
	o.loseLedger()
	o.run(copies[1])
	o.recover()
	verify(t, t.Context(), o.connect(), to, sent)
	o.stop()
}

// install follows the page until all services run.
func (o *operator) install() {
	o.t.Helper()
	steps := o.blocks("install.md", "Processes")
	o.run(steps[0])
	o.follow("secure.md", "Let no service own its tables")
	o.given["WEIR_BROKERS"], o.given["WEIR_BACKUP_DIR"] = o.brokers, o.backups
	o.starting = steps[1]
	o.start()
}

// observe reads metrics, a profile, sizes and spans.
func (o *operator) observe() {
	o.t.Helper()
	for section, want := range map[[2]string]string{
		{"observe.md", "Metrics"}: "weir_ledger_", {"observe.md", "Profiles"}: "flat%", {"size.md", "Disk"}: "weir_table_bytes",
	} {
		if shown := o.follow(section[0], section[1]); !strings.Contains(shown, want) {
			o.t.Errorf("the commands of %v show %q", section, shown)
		}
	}
	testenv.Eventually(o.t, func() error {
		if len(o.collector.Spans()) == 0 {
			return errors.New("the collector has no spans")
		}
		return nil
	})
}

// loseLedger drops the ledger's tables.
func (o *operator) loseLedger() {
	o.t.Helper()
	o.run(`psql --host="$PGHOST" --username="$PGUSER" --dbname=ledger --quiet --command='ALTER SCHEMA ledger RENAME TO damaged'`)
}

// backUp starts the continuous backup, and waits until it was restored.
func (o *operator) backUp() {
	o.t.Helper()
	variables := maps.Clone(o.given)
	variables["WEIR_BACKUP_DATABASE_URL_FILE"], variables["WEIR_METRICS_LISTEN"] = "secrets/"+provision.BackupDatabaseURL, ""
	backup := o.shell(variables, "exec "+strings.Join(o.blocks("backup.md", "Set it up"), ""))
	o.t.Cleanup(func() { testenv.Must(o.t, backup.Stop()) })
	o.backedUp()
}

// backedUp waits until all that is committed is in a backup that was restored.
func (o *operator) backedUp() {
	o.t.Helper()
	now := time.Now()
	testenv.Eventually(o.t, func() error {
		status, err := continuous.ReadStatus(o.backups)
		if err == nil && (status.Verified.IsZero() || !status.Archived.After(now) || len(status.Failures) > 0) {
			err = fmt.Errorf("the status is %+v", status)
		}
		return err
	})
}

// recover loses the server, follows the steps for the night, and starts
// the services before the last.
func (o *operator) recover() {
	o.t.Helper()
	o.backedUp()
	testenv.Must(o.t, o.postgres.Kill())
	steps := o.blocks("backup.md", "At three in the morning")
	o.run(steps[0])
	o.startRecovered()
	last := len(steps) - 1
	for _, block := range steps[1:last] {
		o.run(block)
	}
	o.start()
	o.backedUp()
	o.given["WEIR_DATABASE_URL_FILE"] = "secrets/ledger_database_url" // as the ledger has it
	o.run(steps[last])
}

// startRecovered starts the server of the recovered data, where the old one was.
func (o *operator) startRecovered() {
	o.t.Helper()
	port, err := strconv.Atoi(o.given["PGPORT"])
	testenv.Must(o.t, err)
	o.postgres, err = postgres.Start(o.t.Context(), postgres.Config{
		Dir: filepath.Dir(o.recovered), Port: port, Throwaway: true, Durable: true, Logger: testenv.Logger(o.t),
	})
	testenv.Must(o.t, err)
	at, err := url.Parse(o.postgres.AdminURL())
	testenv.Must(o.t, err)
	o.given["PGPASSWORD"], _ = at.User.Password() // its file was lost with the server
}

// An operator has a shell, in a folder with the secrets, a PostgreSQL
// server and a broker.
type operator struct {
	t         *testing.T
	folder    string
	backups   string // a directory that PostgreSQL's user can reach
	recovered string // a data directory
	postgres  *postgres.Server
	brokers   string
	collector *tracingtest.Collector
	page      *strings.Replacer   // replaces a page's names by this installation's
	given     map[string]string   // variables of the shell
	starting  string              // commands that start the ledger
	listens   map[string]string   // services' addresses
	shows     map[string]string   // addresses of their metrics
	services  []*programs.Process // running
}

// operated are the services in their order of starting.
var operated = []string{"tenants", "ledger", "grouping", "ingest", "gateway"}

func newOperator(t *testing.T, brokers string) *operator {
	t.Helper()
	o := &operator{
		t: t, folder: t.TempDir(), brokers: brokers, collector: tracingtest.New(t), given: map[string]string{},
		listens: map[string]string{}, shows: map[string]string{},
	}
	scratch, err := testenv.Scratch("weir-test-operated-")
	testenv.Must(t, err)
	testenv.Must(t, os.Chmod(scratch, 0o755)) //nolint:gosec // PostgreSQL's user passes it
	t.Cleanup(func() { os.RemoveAll(scratch) })
	o.backups, o.recovered = filepath.Join(scratch, "backups"), filepath.Join(scratch, "server", "data")
	testenv.Must(t, os.Mkdir(filepath.Dir(o.recovered), 0o755)) //nolint:gosec // as above
	for _, service := range operated {
		o.listens[service], o.shows[service] = freeAddress(t), freeAddress(t)
	}
	o.startPostgres()
	path := []string{o.given["PATH"], os.Getenv("PATH")}
	for _, main := range append(slices.Collect(maps.Values(services)), "deploy/cmd/gateway", "deploy/cmd/weir", "ledger/cmd/ledger-verify", "deploy/e2e/curl") {
		path = append(path, filepath.Dir(programs.Build(t, main)))
	}
	slices.Reverse(path)
	o.given["PATH"] = strings.Join(path, ":")
	o.page = strings.NewReplacer("postgres.example", o.given["PGHOST"], "--username=postgres", "--username="+o.given["PGUSER"], "kafka.example:9092", o.brokers,
		"kafka-1.example:9093,kafka-2.example:9093", o.brokers, "db.example", o.given["PGHOST"]+":"+o.given["PGPORT"],
		"http://collector:4318", o.collector.URL, "SAMPLER_ARG=0.01", "SAMPLER_ARG=1", "10.0.0.2", "127.0.0.1",
		"/run/secrets/", filepath.Join(o.folder, "secrets")+"/", "/var/backups/weir", o.backups, "/var/lib/postgresql/17/main", o.recovered, "http://127.0.0.1:9464", "http://"+o.shows["ledger"], "seconds=10", "seconds=1")
	return o
}

// startPostgres starts a server, with PostgreSQL's own variables for it.
func (o *operator) startPostgres() {
	o.t.Helper()
	var err error
	o.postgres, err = postgrestest.StartDurable(o.t.Context())
	testenv.Must(o.t, err)
	o.t.Cleanup(func() { testenv.Must(o.t, o.postgres.Kill()) })
	at, err := url.Parse(o.postgres.AdminURL())
	testenv.Must(o.t, err)
	password, _ := at.User.Password()
	maps.Copy(o.given, map[string]string{
		"PATH": o.postgres.Binaries(), "PGHOST": at.Hostname(), "PGPORT": at.Port(), "PGUSER": at.User.Username(), "PGPASSWORD": password,
	})
}

func (o *operator) read(file string) string {
	o.t.Helper()
	text, err := os.ReadFile(filepath.Join(o.folder, file))
	testenv.Must(o.t, err)
	return strings.TrimSpace(string(text))
}

// blocks returns those in a section of a page, with this installation's names.
func (o *operator) blocks(page, section string) (found []string) {
	o.t.Helper()
	for _, block := range docstest.BlocksOf(o.t, page, section) {
		found = append(found, o.page.Replace(block))
	}
	return found
}

// follow runs all blocks of a section, and returns their output.
func (o *operator) follow(page, section string) (output string) {
	o.t.Helper()
	for _, block := range o.blocks(page, section) {
		output += o.run(block)
	}
	return output
}

// run runs a block of commands. None may fail; its exported variables stay.
func (o *operator) run(block string) string {
	o.t.Helper()
	p := o.shell(o.given, block+"\nexport -p >exported")
	if err := p.Wait(); err != nil {
		o.t.Fatalf("%s%v\n%s", block, err, p.Output)
	}
	for line := range strings.Lines(o.read("exported")) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if strings.HasPrefix(name, "WEIR_") || strings.HasPrefix(name, "OTEL_") {
			o.given[name] = strings.Trim(value, `'"`)
		}
	}
	return p.Output.String()
}

func (o *operator) shell(variables map[string]string, script string) *programs.Process {
	return programs.Launch(o.t, "sh", variables, "-c", "set -eu\ncd "+o.folder+"\n"+script)
}

// start starts every service as the page starts the ledger.
func (o *operator) start() {
	o.t.Helper()
	for _, service := range operated {
		variables := maps.Clone(o.given)
		maps.Copy(variables, o.settings(service))
		o.services = append(o.services, o.shell(variables, o.startingOf(service)))
	}
	in := o.connect()
	testenv.Must(o.t, o.services[len(o.services)-1].AwaitReady(o.t.Context(), in.api.Ready, testenv.Patience))
	testenv.Eventually(o.t, in.isDescribed)
}

// settings returns those that the page names for one service.
func (o *operator) settings(service string) map[string]string {
	settings := map[string]string{}
	switch service {
	case "tenants":
		settings["WEIR_OPERATOR_TOKEN_FILE"], settings["WEIR_WEBHOOK_KEYS_FILE"] = "secrets/operator_token", "secrets/webhook_keys"
	case "gateway":
		settings["WEIR_CA_FILE"] = "secrets/tls/ca.pem"
		for _, module := range contract.Modules() {
			settings["WEIR_"+strings.ToUpper(module)+"_URL"] = "https://" + o.listens[module]
		}
	}
	return settings
}

// startingOf returns the commands that start the ledger, for another
// service and with other addresses. The shell becomes the service.
func (o *operator) startingOf(service string) string {
	exports, last, _ := strings.Cut(o.starting, "WEIR_BROKERS=")
	if last = "exec env WEIR_BROKERS=" + last; service == "gateway" {
		last = "exec gateway"
	}
	return strings.NewReplacer(":8443", o.listens[service], "127.0.0.1:9464", o.shows[service], "ledger", service).Replace(exports + last)
}

// connect returns a client of the gateway.
func (o *operator) connect() installation {
	o.t.Helper()
	return connect(o.t, "https://"+o.listens["gateway"]+"/v1", filepath.Join(o.folder, "secrets/tls/ca.pem"), o.read("secrets/operator_token"))
}

// stop stops all services, the gateway first.
func (o *operator) stop() {
	o.t.Helper()
	for i, running := range slices.Backward(o.services) {
		if err := running.Stop(); err != nil {
			o.t.Errorf("%s did not stop in order: %v\n%s", operated[i], err, running.Output)
		}
	}
	o.services = nil
}

// guide runs every command of a page in order, with the replacement for
// curl, and returns what they print. None may fail. least is how many calls
// by a function of the page there are, such as "ask".
func guide(t *testing.T, page, dataDir, function string, least int) string {
	text, err := os.ReadFile(page)
	testenv.Must(t, err)
	script := "set -eu\n"
	script += strings.Join(docstest.Blocks(string(text)), "")
	if calls := strings.Count(script, function+" "); calls < least {
		t.Fatalf("%s has %d calls", page, calls)
	}
	return inShell(t, dataDir, script)
}

// inShell runs a script beside the data directory of an installation, and
// returns what it prints.
func inShell(t *testing.T, dataDir, script string) string {
	t.Helper()
	dir := t.TempDir()
	testenv.Must(t, os.Symlink(dataDir, filepath.Join(dir, ".weir")))
	shell := exec.CommandContext(t.Context(), "sh", "-c", script)
	shell.Dir = dir
	path := filepath.Dir(programs.Build(t, "deploy/e2e/curl")) + ":" + filepath.Dir(programs.Build(t, "deploy/cmd/weir"))
	shell.Env = []string{"PATH=" + path + ":" + os.Getenv("PATH"), "HOME=" + dir}
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

// sending follows the pages for those whose programs send logs.
func sending(t *testing.T, dataDir string) {
	answers := guide(t, "../../ingest/docs/sending.md", dataDir, "send", 7)
	guide(t, "../../ingest/docs/opentelemetry.md", dataDir, "curl", 1)
	guide(t, "../../ingest/docs/shippers.md", dataDir, "curl", 2)
	for _, promised := range []string{
		`"normalized":2,"normalized_members":{"level":2,"timestamp":2,"error.stack_trace":1}`, `"bytes_used":75,"rejected":0`, "Accepted 1 of 2 entries; 1 rejected", `"code":"invalid_entries"`, `"code":"idempotency_key_reused"`} {
		if !strings.Contains(answers, promised) {
			t.Errorf("no answer has %s: %s", promised, answers)
		}
	}
}

// PostgreSQL parses each statement of the runbooks, in the schema of
// the named module.
func runbooksStatements(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	files, err := filepath.Glob("../docs/runbooks/*.md")
	testenv.Must(t, err)
	statement, found := regexp.MustCompile(`sql (\w+) "([^"]+)"`), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		testenv.Must(t, err)
		for _, match := range statement.FindAllStringSubmatch(string(text), -1) {
			found++
			if !slices.Contains(schemas, match[1]) {
				t.Errorf("%s: %q is no module", filepath.Base(file), match[1])
			}
			_, err := conn.Exec(t.Context(), `SELECT set_config('search_path', $1, false)`, match[1])
			testenv.Must(t, err)
			if _, err := conn.Exec(t.Context(), "EXPLAIN "+match[2]); err != nil {
				t.Errorf("%s: %q: %v", filepath.Base(file), match[2], err)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d statements are found", found)
	}
}
