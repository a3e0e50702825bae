package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/allinone/allinonetest"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/continuous"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

const (
	unusable = "127.0.0.1:1" // nothing listens there
)

// An installation is one that has accepted entries, charged them and
// stopped in order.
type installation struct {
	database string
	brokers  []string
	dir      string
	backups  string
	conn     *pgx.Conn // sees every tenant's rows
}

// healthy returns the doctor's configuration for it, without a fault.
func (i *installation) healthy() Config {
	return Config{
		Brokers: i.brokers, MaxLag: time.Hour,
		FolderConfig: FolderConfig{DataDir: i.dir, BackupDir: i.backups}, CertificateConfig: CertificateConfig{Hosts: []string{"localhost"}},
		LogConfig: LogConfig{LogPartitions: 12, LogRetention: 7 * 24 * time.Hour},
		Machine: Machine{
			Space: func(string) (Space, error) { return Space{Free: 50, Total: 100}, nil },
			Files: func() (int, error) { return 20_000, nil },
		},
	}
}

// newInstallation runs all of Weir until the doctor finds nothing, with
// a charged batch, and stops it.
func newInstallation(t *testing.T) *installation {
	i := &installation{database: postgrestest.URL(t), brokers: kafkatest.Brokers(t), dir: t.TempDir(), backups: t.TempDir()}
	backedUp(t, i.backups, func(*continuous.Status) {})
	t.Setenv("WEIR_DATABASE_URL", i.database)
	t.Run("healthy", func(t *testing.T) {
		modules, err := allinone.ModulesFromEnvironment()
		testenv.Must(t, err)
		modules.Ledger.CheckInterval = 100 * time.Millisecond
		app, err := allinone.New(t.Context(), allinone.Config{
			Listen: "127.0.0.1:0", DataDir: i.dir, DatabaseURL: httpapi.Secret(i.database), Brokers: i.brokers, Modules: modules,
			LogRetention: i.healthy().LogRetention,
		}, slog.New(slog.NewTextHandler(t.Output(), nil)))
		testenv.Must(t, err)
		allinonetest.Run(t, app)
		i.post(t, app.Env())
		testenv.Eventually(t, func() error { return i.sound(t) })
	})
	var err error
	i.conn, err = pgx.Connect(t.Context(), i.database)
	testenv.Must(t, err)
	t.Cleanup(func() { i.conn.Close(context.Background()) })
	i.exec(t, `SET weir.organization = '*'`)
	return i
}

// post sends one entry, and returns once it is charged and checked.
func (i *installation) post(t *testing.T, env allinone.DevEnv) {
	api, err := client.New(env.BaseURL, env.CAFile, 1)
	testenv.Must(t, err)
	defer api.Close()
	body := fmt.Sprintf(`{"logs": [{"timestamp": %q, "level": "info", "message": "cart opened"}]}`, time.Now().UTC().Format(time.RFC3339))
	_, err = api.Deliver(t.Context(), env.APIKey, client.Batch{Body: []byte(body), IdempotencyKey: "once"})
	testenv.Must(t, err)
	conn, err := pgx.Connect(t.Context(), i.database)
	testenv.Must(t, err)
	defer conn.Close(t.Context())
	testenv.Eventually(t, func() error {
		var checked int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM ledger.ranges r JOIN ledger.checked_ranges c USING (partition) WHERE c.next >= r.next_offset`).Scan(&checked)
		if err == nil && checked == 0 {
			err = errors.New("nothing is charged and checked")
		}
		return err
	})
}

// examine reports all findings but those of every test server.
func examine(t *testing.T, config Config) Report {
	report := Run(t.Context(), config)
	report.Findings = slices.DeleteFunc(report.Findings, isOfTests)
	return report
}

// isOfTests reports whether f is that a server may lose commits:
// TestUndurableIsFound tests that.
func isOfTests(f Finding) bool { return strings.Contains(f.Seen, "=off for the server") }

// sound returns the doctor's findings.
func (i *installation) sound(t *testing.T) (err error) {
	report := examine(t, i.healthy())
	for _, f := range report.Findings {
		if f.Level != OK {
			err = errors.Join(err, fmt.Errorf("%+v", f))
		}
	}
	if status := report.ExitStatus(true); err == nil && (status != 0 || len(report.Findings) < 40) {
		err = fmt.Errorf("exit status %d of %d findings", status, len(report.Findings))
	}
	return err
}

func (i *installation) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := i.conn.Exec(context.Background(), statement, args...); err != nil { // also after the test has ended
		t.Fatalf("%s: %v", statement, err)
	}
}

// change plants a fault in the database until the test ends.
func (i *installation) change(t *testing.T, do, undo string) {
	t.Helper()
	i.exec(t, do)
	t.Cleanup(func() { i.exec(t, undo) })
}

// role returns the installation's role.
func (i *installation) role(t *testing.T) string {
	address, err := url.Parse(i.database)
	testenv.Must(t, err)
	return address.User.Username()
}

// as returns the database's address with another user or name.
func (i *installation) as(t *testing.T, change func(*url.URL)) string {
	address, err := url.Parse(i.database)
	testenv.Must(t, err)
	change(address)
	return address.String()
}

// A fault is planted, and must give one finding.
type fault struct {
	name  string
	plant func(t *testing.T, i *installation, c *Config)
	want  Finding // Seen is a part of the text
}

// The doctor finds nothing in a healthy installation, each planted
// fault, and nothing again once all are undone.
func TestFaultsAreFound(t *testing.T) {
	i := newInstallation(t)
	for _, faults := range [][]fault{databaseFaults, objectFaults, roleFaults, limitFaults, brokerFaults, consumerFaults, booksFaults, historyFaults, machineFaults, backupFaults, secretFaults,
		certificateFaults} {
		for _, f := range faults {
			t.Run(f.name, func(t *testing.T) { f.isFound(t, i) })
		}
	}
	t.Run("consumers that go on meanwhile", i.goesOnMeanwhile)
	if err := i.sound(t); err != nil {
		t.Errorf("after all faults are taken back: %v", err)
	}
}

// goesOnMeanwhile checks databases whose consumers have advanced after
// the doctor saw the topics' ends.
func (i *installation) goesOnMeanwhile(t *testing.T) {
	host := &hostChecker{checker: newChecker(i.healthy())}
	host.settings()
	broker := &brokerChecker{checker: host.checker}
	broker.bus(t.Context())
	for _, topic := range broker.seen.Topics {
		for p := range topic.Partitions {
			topic.Partitions[p].End = topic.Partitions[p].Start
		}
	}
	*host.report = Report{}
	(&databaseChecker{checker: host.checker, services: host.services, broker: broker}).databases(t.Context())
	for _, f := range host.report.Findings {
		if f.Level != OK && !isOfTests(f) {
			t.Errorf("found %+v", f)
		}
	}
}

func (f fault) isFound(t *testing.T, i *installation) {
	config := i.healthy()
	for _, m := range modules {
		if strings.HasPrefix(f.want.Subject, m.name) { // others do not matter
			config.Modules = []string{m.name}
		}
	}
	f.plant(t, i, &config)
	report := examine(t, config)
	var table bytes.Buffer
	testenv.Must(t, report.Table(&table))
	if strings.Contains(table.String(), wrongPassword) {
		t.Error("a password is shown")
	}
	for _, found := range report.Findings {
		if found.Check == f.want.Check && (found.Subject == f.want.Subject || f.want.Subject == "") && found.Level == f.want.Level && strings.Contains(found.Seen, f.want.Seen) {
			if found.Fix == "" {
				t.Error("it does not say what to do")
			}
			if status := report.ExitStatus(true); status == 0 || status == exitWarned && report.Count(Fail) > 0 {
				t.Errorf("exit status %d", status)
			}
			return
		}
	}
	t.Errorf("not found: %+v\n%s", f.want, table.String())
}

const wrongPassword = "not-the-password"

// Scripts use the exit status: a failure is 2, only warnings are 1 if strict.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		levels        []Level
		loose, strict int
	}{{nil, 0, 0}, {[]Level{OK}, 0, 0}, {[]Level{OK, Warn}, 0, 1}, {[]Level{Warn, Fail}, 2, 2}, {[]Level{Fail}, 2, 2}} {
		var r Report
		for _, level := range c.levels {
			r.add(level, "check", "subject", "seen", "fix")
		}
		if loose, strict := r.ExitStatus(false), r.ExitStatus(true); loose != c.loose || strict != c.strict {
			t.Errorf("%v: %d and %d, want %d and %d", c.levels, loose, strict, c.loose, c.strict)
		}
	}
}

// Programs read the same as people, and no foreign text controls a
// terminal or shows a credential.
func TestJSON(t *testing.T) {
	r := Report{At: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	key := "weir_" + strings.Repeat("0123456789abcdef", 3)
	r.add(Fail, "broker", "a:9092", "refused\x1b[2J\nby "+key, "Start it.")
	var text strings.Builder
	testenv.Must(t, r.JSON(&text))
	var read Report
	testenv.Must(t, json.Unmarshal([]byte(text.String()), &read))
	f := read.Findings[0]
	if f.Check != "broker" || f.Subject != "a:9092" || f.Level != Fail || f.Fix != "Start it." || !read.At.Equal(r.At) {
		t.Errorf("read %+v", read)
	}
	if strings.ContainsAny(f.Seen, "\x1b\n") || strings.Contains(f.Seen, key) || !strings.HasPrefix(f.Seen, `refused\x1b[2J by`) {
		t.Errorf("seen is %q", f.Seen)
	}
}

// A weir run whose broker answers but refuses records is found.
func TestReadinessIsFound(t *testing.T) {
	var refuses error
	router := chi.NewRouter()
	httpapi.Health(router, func(context.Context) ([]httpapi.Backlog, error) { return nil, httpapi.Part("broker", refuses) })
	server := httptest.NewServer(router)
	defer server.Close()
	config := Config{FolderConfig: FolderConfig{DataDir: t.TempDir()}}
	env := allinone.DevEnv{BaseURL: server.URL + "/v1"}
	testenv.Must(t, env.Write(filepath.Join(config.DataDir, allinone.EnvFile)))
	broker, err := kafka.Start(kafka.Config{Dir: filepath.Join(config.DataDir, "kafka"), Logger: slog.New(slog.DiscardHandler)})
	testenv.Must(t, err)
	defer broker.Close()
	for want, err := range map[Level]error{OK: nil, Fail: errors.New("no space left")} {
		refuses = err
		e := &brokerChecker{checker: newChecker(config)}
		e.bus(t.Context())
		at := slices.IndexFunc(e.report.Findings, func(f Finding) bool { return f.Check == "ready" })
		if at < 0 {
			t.Fatalf("not asked: %+v", e.report.Findings)
		}
		if f := e.report.Findings[at]; f.Level != want || (want == Fail) != strings.Contains(f.Seen, "broker") {
			t.Errorf("found %+v, want %s", f, want)
		}
	}
}

var historyFaults = []fault{
	{"entries in a ClickHouse that is not set", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `UPDATE ingest.move_state SET moves = 1`, `UPDATE ingest.move_state SET moves = 0`)
	}, Finding{Check: "history", Subject: "ClickHouse", Level: Fail, Seen: "is in ClickHouse"}},
}

var booksFaults = []fault{
	{"stale check", func(t *testing.T, i *installation, c *Config) {
		i.change(t, `UPDATE ledger.checked_ranges SET next = 0`, `UPDATE ledger.checked_ranges c SET next = (SELECT next FROM ledger.bus_positions p
			WHERE group_name = 'ledger.quota' AND p.partition = c.partition)`)
		c.Machine.Clock = func() time.Time { return time.Now().Add(2 * time.Hour) }
	}, Finding{Check: "books", Subject: "checks", Level: Fail, Seen: "is not checked yet"}},
	{"hour that is not sealed", func(_ *testing.T, _ *installation, c *Config) {
		c.Machine.Clock = func() time.Time { return time.Now().Add(2 * time.Hour) }
	}, Finding{Check: "books", Subject: "seals", Level: Fail, Seen: "not sealed"}},
	{"range that is not its transfers", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `UPDATE ledger.ranges SET charged_bytes = charged_bytes + 1`, `UPDATE ledger.ranges SET charged_bytes = charged_bytes - 1`)
	}, Finding{Check: "books", Subject: "ledger", Level: Fail, Seen: "a range charged is the sum of its transfers"}},
	{"range that is not the log", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `UPDATE ledger.ranges SET bytes = bytes + 1`, `UPDATE ledger.ranges SET bytes = bytes - 1`)
	}, Finding{Check: "books", Subject: "ledger", Level: Fail, Seen: "the log has"}},
	{"root that is not of the chains", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `INSERT INTO ledger.seals (hour, organizations, root, sealed_at) VALUES ('2100-01-01T00:00:00Z', 7, '\x00', now())`, `DELETE FROM ledger.seals WHERE organizations = 7`)
	}, Finding{Check: "books", Subject: "ledger", Level: Fail, Seen: "of 7 chains"}},
}
