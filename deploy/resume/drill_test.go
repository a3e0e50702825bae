package resume_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/allinone/allinonetest"
	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/doctor"
	"github.com/weirlog/weir/deploy/resume"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// A drill is an installation that loses data, and what it has accepted.
type drill struct {
	database string
	brokers  []string
	dir      string   // of the data, and of backups
	backup   string   // the last
	refused  []string // API keys: revoked after the backup, and missing in it
	bytes    int64    // accepted and not lost
	entries  int
}

// Databases are lost and restored, the brokers' logs are lost, and both at
// once: the loss is reported, all else is there once, and the books are sound.
func TestDrill(t *testing.T) {
	d := &drill{database: postgrestest.URL(t), brokers: kafkatest.Brokers(t), dir: t.TempDir()}
	t.Setenv("WEIR_DATABASE_URL", d.database)
	d.runs(t, "a backup while it runs", func(t *testing.T, api *client.Client, env allinone.DevEnv) {
		d.post(t, api, env, 3)
		revoked, err := api.CreateAPIKey(t.Context(), env.OperatorToken, env.Project, "dev", "revoked after the backup")
		testenv.Must(t, err)
		d.copy(t)
		testenv.Must(t, api.RevokeAPIKey(t.Context(), env.OperatorToken, revoked.ID, "leaked"))
		key, err := api.CreateAPIKey(t.Context(), env.OperatorToken, env.Project, "dev", "after the backup")
		testenv.Must(t, err)
		d.refused, env.APIKey = []string{revoked.Key, key.Key}, key.Key
		d.post(t, api, env, 4)
	})
	t.Run("a backup that is damaged brings nothing back", d.damaged)

	d.loseDatabases(t)
	d.restore(t)
	if said := d.resumes(t, "Every position is in its log"); !strings.Contains(said, "Revoked again, as the log has it: key_") {
		t.Errorf("nothing of the key that was revoked: %s", said)
	}
	d.runs(t, "databases of an earlier hour, the log is there", func(t *testing.T, api *client.Client, env allinone.DevEnv) {
		d.post(t, api, env, 2)
		d.refusesKeys(t, api)
	})
	d.sound(t)

	d.loseEnd(t)
	d.doctorFinds(t, "the log has lost its end", "weir resume")
	d.resumes(t, "fills: partition", "ledger.quota never applied 30 records", "360 records at most")
	d.resumes(t, "Every position is in its log")
	d.runs(t, "the log lost its end", func(t *testing.T, api *client.Client, env allinone.DevEnv) { d.post(t, api, env, 2) })
	d.sound(t)

	d.loseLogs(t)
	d.doctorFinds(t, "another topic of that name", "weir resume")
	d.resumes(t, "recreated: ", contract.TopicLogs, "begins at")
	d.runs(t, "logs are lost, databases are there", func(t *testing.T, api *client.Client, env allinone.DevEnv) { d.post(t, api, env, 2) })
	d.sound(t)

	d.loseLogs(t)
	d.loseDatabases(t)
	d.restore(t)
	d.bytes, d.entries = d.kept(t) // both had what was accepted since the backup
	d.resumes(t, "recreated: ", contract.TopicLogs)
	d.resumes(t, "Every position is in its log") // a second run changes nothing
	d.runs(t, "both are lost", func(t *testing.T, api *client.Client, env allinone.DevEnv) { d.post(t, api, env, 2) })
	d.sound(t)
	d.doctorFinds(t, "restored from the backup of")
}

// runs runs Weir until all accepted entries are visible.
func (d *drill) runs(t *testing.T, what string, during func(*testing.T, *client.Client, allinone.DevEnv)) {
	ok := t.Run(what, func(t *testing.T) {
		modules, err := allinone.ModulesFromEnvironment()
		testenv.Must(t, err)
		modules.Ledger.CheckInterval = 100 * time.Millisecond
		app, err := allinone.New(t.Context(), allinone.Config{
			Listen: "127.0.0.1:0", DataDir: d.dir, DatabaseURL: httpapi.Secret(d.database), Brokers: d.brokers, Modules: modules,
		}, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
		testenv.Must(t, err)
		allinonetest.Run(t, app)
		env := app.Env()
		api, err := client.New(env.BaseURL, env.CAFile, 1)
		testenv.Must(t, err)
		defer api.Close()
		during(t, api, env)
		testenv.Eventually(t, func() error { return d.seen(t.Context(), api, env) })
		d.refuses(t)
	})
	if !ok {
		t.FailNow()
	}
}

// post posts batches until they are accepted.
func (d *drill) post(t *testing.T, api *client.Client, env allinone.DevEnv, batches int) {
	for range batches {
		body := fmt.Sprintf(`{"logs": [{"timestamp": %q, "level": "error", "message": "entry %d", "error": {"type": "E", "message": "e"}}]}`,
			time.Now().UTC().Format(time.RFC3339Nano), d.entries)
		var accepted client.Accepted
		testenv.Eventually(t, func() (err error) { // credentials have to be published first
			accepted, err = api.Post(t.Context(), env.APIKey, client.Batch{Body: []byte(body)})
			return err
		})
		d.bytes, d.entries = d.bytes+accepted.BytesUsed, d.entries+1
	}
	testenv.Eventually(t, func() error { return d.seen(t.Context(), api, env) })
}

// refusesKeys posts with the keys that must not work.
func (d *drill) refusesKeys(t *testing.T, api *client.Client) {
	t.Helper()
	for _, key := range d.refused {
		_, err := api.Post(t.Context(), key, client.Batch{Body: []byte(`{"logs": [{"timestamp": "2026-11-20T12:00:00Z", "level": "info", "message": "m"}]}`)})
		var problem *client.Problem
		if !errors.As(err, &problem) || problem.Status != http.StatusUnauthorized {
			t.Errorf("a key that was revoked, or that nobody could revoke: %v", err)
		}
	}
}

// seen compares balance, log and error groups with what was accepted.
func (d *drill) seen(ctx context.Context, api *client.Client, env allinone.DevEnv) error {
	balance, err := api.Balance(ctx, env.ServiceToken, env.Organization)
	if err != nil {
		return err
	}
	logs := 0
	if err := api.EachLog(ctx, env.APIKey, client.LogsQuery{Project: env.Project}, func(client.StoredEntry) error { logs++; return nil }); err != nil {
		return err
	}
	groups, err := api.ErrorGroups(ctx, env.APIKey, env.Project)
	if err != nil {
		return err
	}
	occurrences := int64(0)
	for _, group := range groups {
		occurrences += group.Count
	}
	if balance.Consumed != d.bytes || logs != d.entries || occurrences != int64(d.entries) {
		return fmt.Errorf("%d bytes charged, %d entries stored, %d grouped, want %d, %d and as many", balance.Consumed, logs, occurrences, d.bytes, d.entries)
	}
	return nil
}

func (d *drill) backups() string { return filepath.Join(d.dir, "backups") }

func (d *drill) source() backup.Source { return backup.Source{Brokers: d.brokers, DataDir: d.dir} }

// copy makes a backup, which replaces an older one.
func (d *drill) copy(t *testing.T) {
	older := filepath.Join(d.backups(), "weir-20200101T030000Z")
	testenv.Must(t, os.MkdirAll(older, 0o700))
	testenv.Must(t, os.WriteFile(filepath.Join(older, backup.ManifestName), []byte("{}"), 0o600))
	at := time.Date(2020, 1, 1, 3, 0, 0, 0, time.UTC)
	config := backup.Config{To: d.backups(), Keep: 1, Jobs: 2, Source: d.source(), Clock: func() time.Time { return at }}
	var out bytes.Buffer
	if _, err := backup.Make(t.Context(), config, &out); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("a second of that second: %v", err)
	}
	at = time.Now()
	var err error
	d.backup, err = backup.Make(t.Context(), config, &out)
	testenv.Must(t, err)
	if kept, err := backup.List(d.backups()); err != nil || len(kept) != 1 || kept[0] != d.backup {
		t.Errorf("kept are %q, %v", kept, err)
	}
	m, err := backup.Open(d.backup)
	testenv.Must(t, err)
	if logs := m.Topics[contract.TopicLogs]; len(m.Modules) != 4 || len(logs.Logs) != contract.DefaultLogPartitions || logs.Settings["cleanup.policy"] != "delete" {
		t.Errorf("the manifest has %d modules, and of the log %+v", len(m.Modules), logs)
	}
	raw, err := os.ReadFile(filepath.Join(d.backup, backup.ManifestName))
	testenv.Must(t, err)
	for _, secret := range []string{"org_", "prj_", "entry 0", "password"} {
		if strings.Contains(string(raw)+out.String(), secret) {
			t.Errorf("the manifest or the progress has %q:\n%s\n%s", secret, raw, out.String())
		}
	}
}

// damaged changes one byte of a backup.
func (d *drill) damaged(t *testing.T) {
	m, err := backup.Open(d.backup)
	testenv.Must(t, err)
	path := filepath.Join(d.backup, m.Modules["ledger"].Files[0].Path)
	whole, err := os.ReadFile(path)
	testenv.Must(t, err)
	broken := bytes.Clone(whole)
	broken[len(broken)/2] ^= 1
	testenv.Must(t, os.WriteFile(path, broken, 0o600))
	_, err = backup.Restore(t.Context(), backup.RestoreConfig{From: d.backups(), DataDir: d.dir}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged backup: %v", err)
	}
	testenv.Must(t, os.WriteFile(path, whole, 0o600))
	_, err = backup.Restore(t.Context(), backup.RestoreConfig{From: d.backups(), DataDir: d.dir}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("over what is there: %v", err)
	}
}

func (d *drill) restore(t *testing.T) {
	t.Helper()
	_, err := backup.Restore(t.Context(), backup.RestoreConfig{From: d.backups(), Jobs: 2, DataDir: d.dir}, t.Output())
	testenv.Must(t, err)
}

func (d *drill) connect(t *testing.T) *pgx.Conn {
	conn, err := pgx.Connect(t.Context(), d.database)
	testenv.Must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), `SET weir.organization = '*'`)
	testenv.Must(t, err)
	return conn
}

func (d *drill) loseDatabases(t *testing.T) {
	t.Helper()
	_, err := d.connect(t).Exec(t.Context(), `DROP SCHEMA ingest, ledger, grouping, tenants CASCADE`)
	testenv.Must(t, err)
}

// loseEnd leaves the database as if the log store alone had applied
// records that the log has lost since.
func (d *drill) loseEnd(t *testing.T) {
	t.Helper()
	_, err := d.connect(t).Exec(t.Context(), `UPDATE ingest.bus_positions SET next = next + 30 WHERE topic = $1`, contract.TopicLogs)
	testenv.Must(t, err)
}

// loseLogs recreates every topic, as new brokers would have them.
func (d *drill) loseLogs(t *testing.T) {
	t.Helper()
	all := contract.Topics(0, 7*24*time.Hour)
	var names []string
	for _, topic := range all {
		names = append(names, topic.Name)
	}
	client := &kafka.Client{Addr: kafka.TCP(d.brokers...), Timeout: testenv.Patience}
	answer, err := client.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: names})
	testenv.Must(t, err)
	for _, err := range answer.Errors {
		testenv.Must(t, err)
	}
	testenv.Eventually(t, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
		defer cancel()
		return topics.Ensure(ctx, d.brokers, all)
	})
}

// resumes shows what it would do, does it, and returns what it said.
func (d *drill) resumes(t *testing.T, words ...string) string {
	t.Helper()
	var out bytes.Buffer
	config := resume.Config{Source: d.source(), LogPartitions: contract.DefaultLogPartitions}
	testenv.Must(t, resume.Run(t.Context(), config, &out))
	t.Log(out.String())
	for _, word := range words {
		if !strings.Contains(out.String(), word) {
			t.Errorf("nothing of %q", word)
		}
	}
	config.Yes = true
	testenv.Must(t, resume.Run(t.Context(), config, &out))
	return out.String()
}

// refuses checks that nothing is moved while Weir runs.
func (d *drill) refuses(t *testing.T) {
	t.Helper()
	config := resume.Config{Source: d.source(), LogPartitions: contract.DefaultLogPartitions, Yes: true}
	if err := resume.Run(t.Context(), config, t.Output()); err == nil || !strings.Contains(err.Error(), "stop all services") {
		t.Errorf("while Weir runs: %v", err)
	}
}

// kept returns what the ledger has booked.
func (d *drill) kept(t *testing.T) (sum int64, entries int) {
	testenv.Must(t, d.connect(t).QueryRow(t.Context(), `SELECT coalesce(sum(amount), 0), count(*) FROM ledger.transfers WHERE source = 0`).Scan(&sum, &entries))
	return sum, entries
}

// sound compares the books with themselves and the log, and with what was accepted.
func (d *drill) sound(t *testing.T) {
	t.Helper()
	d.booked(t)
	if sum, entries := d.kept(t); sum != d.bytes || entries != d.entries {
		t.Errorf("%d bytes in %d charges, want %d in %d", sum, entries, d.bytes, d.entries)
	}
}

// booked compares the books with themselves and the log.
func (d *drill) booked(t *testing.T) {
	t.Helper()
	modules, err := allinone.ModulesFromEnvironment()
	testenv.Must(t, err)
	modules.Ledger.DatabaseURL, modules.Ledger.Brokers = httpapi.Secret(d.database), d.brokers
	violations, err := ledger.Verify(t.Context(), modules.Ledger)
	testenv.Must(t, err)
	for _, violation := range violations {
		t.Errorf("%s: %s", violation.Invariant, violation.Detail)
	}
}

func (d *drill) doctorFinds(t *testing.T, words ...string) {
	t.Helper()
	report := doctor.Run(t.Context(), doctor.Config{
		Brokers: d.brokers, FolderConfig: doctor.FolderConfig{DataDir: d.dir, BackupDir: d.backups()},
		LogConfig: doctor.LogConfig{LogPartitions: contract.DefaultLogPartitions},
	})
	var table bytes.Buffer
	testenv.Must(t, report.Table(&table))
	for _, word := range words {
		if !strings.Contains(table.String(), word) {
			t.Errorf("the doctor has nothing of %q:\n%s", word, table.String())
		}
	}
}
