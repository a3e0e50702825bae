package isolation

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// mark is in everything that is deleted, and nowhere else. It is so long that
// it never shares memory with another text: Go packs short strings together.
const mark = "QuetzalcoatlusNorthropi"

// Deleted data is found nowhere: in no table, state file, metric, log
// or manifest of a backup, and in no topic after its retention. One
// organization is deleted whole, and one project of another, which
// otherwise stays as it was. Modules rebuilt from the log, which still
// has everything, don't bring it back.
func TestDeletedIsFoundNowhere(t *testing.T) {
	server := startServer(t)
	office, mailed := withMail(t)
	broker := startAging(t)
	w := newWorldAt(t, broker.addresses(t), server.URL(), mailed)
	gone, living := w.tenant(t, mark), w.tenant(t, "Robin")
	gone.member(t, "owner", strings.ToLower(mark)+"@example.com")
	gone.member(t, "billing", "nobody@"+strings.ToLower(mark)+".example") // whom the mail server refuses
	w.signIn(t, strings.ToLower(mark)+"@example.com")
	project := w.operate(t, "POST", "/v1/projects", map[string]any{"organization": living.things["organization"], "name": mark + "'s shop"}).get("id")
	key := w.operate(t, "POST", "/v1/api-keys", map[string]any{"project": project, "environment": "prod", "name": mark + "'s key"})
	(&tenant{world: w, name: mark}).group(t, project, key.get("key"))
	for _, of := range [][2]string{{gone.things["organization"], gone.things["project"]}, {living.things["organization"], project}} {
		w.accepted(t, of[0], of[1], unreadable)
	}
	w.isParked(t, "ingest", 2)
	w.isParked(t, "grouping", 2)
	w.isRejected(t, gone.things["project"], gone.key)
	w.isRejected(t, project, key.get("key"))
	gone.bill(t, gone.things["organization"], gone.things["project"])
	gone.isMailed(t, office)
	test := gone.testOrganization(t)
	gone.isRead(t)

	w.operate(t, "DELETE", "/v1/projects/"+project, nil)
	w.operate(t, "DELETE", "/v1/organizations/"+gone.things["organization"], nil)
	w.operate(t, "DELETE", "/v1/organizations/"+test, nil)
	for _, secret := range []string{gone.key, key.get("key")} {
		testenv.Eventually(t, func() error {
			if got := w.send(t, request{method: "POST", path: "/v1/logs", body: logs(mark), header: asKey(secret)}); got.status != http.StatusUnauthorized {
				return fmt.Errorf("a deleted key is answered %d %s", got.status, got.brief())
			}
			return nil
		})
	}
	hasRemoved(t, w.isGone(t, living.things["organization"], project))
	hasRemoved(t, w.isGone(t, gone.things["organization"], gone.things["organization"]))
	w.isGone(t, test, test)
	for _, path := range []string{"/v1/projects/" + project, "/v1/organizations/" + test} {
		if got := w.send(t, request{method: "POST", path: path + "/restore", header: asToken(operatorToken)}); got.status != http.StatusConflict {
			t.Errorf("%s comes back: %d %s", path, got.status, got.brief())
		}
	}
	for _, late := range []func(*contract.LogsAccepted){readable, unreadable, firstOfTwo} {
		w.accepted(t, gone.things["organization"], gone.things["project"], late)
		w.accepted(t, living.things["organization"], project, late)
	}
	w.settle(t, living)

	if got := w.send(t, request{method: "GET", path: "/v1/error-groups/" + living.things["group"], header: asKey(living.key)}); !strings.Contains(got.text, "RobinError") {
		t.Errorf("what is not deleted: %d %s", got.status, got.brief())
	}
	if got := w.send(t, request{method: "GET", path: "/v1/logs", header: asKey(living.key)}); strings.Count(got.text, "Robin failed") < 2 || strings.Contains(got.text, mark) {
		t.Errorf("the entries that are not deleted: %d %s", got.status, got.brief())
	}
	shown := w.shown()
	w.stop()
	places := map[string]string{"metrics": shown, "log": w.log.String(), "server's log": read(t, server.LogFile())}
	maps.Copy(places, w.tables(t))
	maps.Copy(places, w.states(t))
	maps.Copy(places, w.backup(t))
	projects := []string{project, gone.things["project"], gone.things["second"]}
	isUnmarked(t, places, projects...)
	if tables := places["table tenants.projects"]; strings.Count(tables, "Robin") != 2 {
		t.Errorf("the projects that are not deleted: %s", tables)
	}
	for _, module := range []string{"ingest", "grouping", "ledger"} {
		if rows := places["table "+module+".inbox_held"]; rows != "" {
			t.Errorf("%s keeps parts that came late: %s", module, rows)
		}
	}
	w.rebuild(t)
	isUnmarked(t, w.tables(t), projects...)
	w.isForgottenOnTopics(t, broker)
	office.Forget()
	w.isForgotten(t)
}

// isRead reads the tenant's entries back.
func (of *tenant) isRead(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if got := of.world.send(t, request{method: "GET", path: "/v1/logs", header: asKey(of.key)}); !strings.Contains(got.text, of.name) {
			return fmt.Errorf("the entries of %s: %d %s", of.name, got.status, got.brief())
		}
		return nil
	})
}

// isRejected sends an entry that is not valid, and waits until it is listed.
func (w *world) isRejected(t *testing.T, project, key string) {
	t.Helper()
	w.send(t, request{method: "POST", path: "/v1/logs", body: `{"logs":[{"message":"` + mark + `"}]}`, header: asKey(key)})
	testenv.Eventually(t, func() error {
		got := w.send(t, request{method: "GET", path: "/v1/projects/" + project + "/rejected-entries", header: asKey(key)})
		if !strings.Contains(got.text, mark) {
			return fmt.Errorf("what was rejected of %s: %d %s", project, got.status, got.brief())
		}
		return nil
	})
}

// Variants of records. One with fewer entries than its header states is parked.
func readable(*contract.LogsAccepted)          {}
func unreadable(record *contract.LogsAccepted) { record.Entries = 2 }
func firstOfTwo(record *contract.LogsAccepted) { record.Parts = 2 }

// isUnmarked looks for the mark, as text and as Postgres prints bytes;
// and for the projects, where their data may be compressed.
func isUnmarked(t *testing.T, places map[string]string, projects ...string) {
	t.Helper()
	for _, place := range slices.Sorted(maps.Keys(places)) {
		text := strings.ToLower(places[place])
		wanted := []string{strings.ToLower(mark), hex.EncodeToString([]byte(mark)), hex.EncodeToString([]byte(strings.ToLower(mark)))}
		if slices.Contains([]string{"table ingest.blocks", "table grouping.error_groups", "table grouping.group_hashes", "table grouping.group_budgets",
			"table grouping.group_packages"}, place) {
			wanted = append(wanted, projects...)
		}
		for _, each := range wanted {
			if at := strings.Index(text, each); at >= 0 {
				t.Errorf("%s shows %s: …%s…", place, each, text[max(0, at-150):min(len(text), at+60)])
			}
		}
	}
}

// wholeRecord matches the end of a row of an inbox: the part, which is
// the only one, and its checksum.
var wholeRecord = regexp.MustCompile(`,1,-?\d+\)`)

// rebuild drops what the modules derived from the log, and waits until
// they have read it again and erased deleted data.
func (w *world) rebuild(t *testing.T) {
	t.Helper()
	made := []string{"grouping", "ingest", "ledger"}
	_, err := w.pool.Exec(t.Context(), `DROP SCHEMA `+strings.Join(made, `, `)+` CASCADE`)
	testenv.Must(t, err)
	w.metrics = telemetry.New()
	var stops []func()
	for name, module := range w.build(t, slog.New(slog.NewJSONHandler(w.log, nil)), func(*allinone.Modules) {}) {
		stops = append(stops, run(t, name, module))
	}
	testenv.Eventually(t, func() error {
		tables := w.tables(t)
		for _, schema := range made {
			if rows := tables["table "+schema+".erasures"]; strings.Count(rows, "\n") != 2 || strings.Contains(rows+"\n", ",)\n") {
				return fmt.Errorf("%s has not erased all three: %s", schema, rows)
			}
			if schema != "ledger" && !wholeRecord.MatchString(tables["table "+schema+".inbox"]) {
				return fmt.Errorf("%s has not read the log yet", schema)
			}
		}
		if tables["table ingest.blocks"] == "" || !strings.Contains(tables["table grouping.error_groups"], "Robin") {
			return errors.New("what is not deleted is not there yet")
		}
		return nil
	})
	for _, stop := range stops {
		stop()
	}
}

// hasRemoved checks that modules reported the number of removed rows by table.
func hasRemoved(t *testing.T, removed map[string]map[string]int64) {
	t.Helper()
	groups := removed["grouping"]["error_groups"]
	if removed["ingest"]["blocks"] == 0 || removed["ingest"]["rejected_samples"] == 0 || groups != 1 && groups != 2 || removed["tenants"]["events"] == 0 {
		t.Errorf("removed %v", removed)
	}
}

// isGone waits until a deletion has finished, and returns the report
// of each module.
func (w *world) isGone(t *testing.T, organization, id string) (removed map[string]map[string]int64) {
	t.Helper()
	testenv.Eventually(t, func() error {
		got := w.send(t, request{method: "GET", path: "/v1/deletions?organization=" + organization, header: asToken(operatorToken)})
		var list struct {
			Items []struct {
				ID, State string
				Removed   map[string]map[string]int64
			}
		}
		if err := json.Unmarshal([]byte(got.text), &list); err != nil {
			return fmt.Errorf("%w: %s", err, got.brief())
		}
		for _, deletion := range list.Items {
			if deletion.ID == id && deletion.State == "gone" {
				removed = deletion.Removed
				return nil
			}
		}
		return fmt.Errorf("%s is not gone: %s", id, got.text)
	})
	return removed
}

// accepted publishes the acceptance of an entry of a deleted project.
func (w *world) accepted(t *testing.T, organization, project string, like func(*contract.LogsAccepted)) {
	t.Helper()
	out, err := publisher.New(publisher.Config{Brokers: w.brokers}, slog.New(slog.DiscardHandler))
	testenv.Must(t, err)
	defer out.Close()
	line := `{"timestamp":"2026-11-21T09:30:00Z","level":"error","message":"` + mark + ` is late","error":{"type":"` + mark + `Error"}}`
	logs := contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: 1, Organization: organization, Project: project, Environment: "prod", Key: "key_0",
		Source: "weir/ingest", Time: time.Now(), Entries: 1, Bytes: int64(len(line)), Errors: 1, Lines: []byte(line + "\n"),
	}
	like(&logs)
	m := message.NewMessage(logs.ID(), logs.Lines)
	m.Metadata = logs.Headers()
	m.Metadata[bus.KeyMetadata] = logs.RecordKey(1)
	testenv.Must(t, out.Publish(contract.TopicLogs, m))
}

// isParked waits until a module has parked that many records.
func (w *world) isParked(t *testing.T, schema string, records int) {
	t.Helper()
	testenv.Eventually(t, func() error {
		parked := w.tables(t)["table "+schema+".bus_parked"]
		if rows := len(strings.FieldsFunc(parked, func(r rune) bool { return r == '\n' })); rows != records {
			return fmt.Errorf("%s has parked %d records, not %d", schema, rows, records)
		}
		return nil
	})
}

// retained returns the content of a topic after its retention and compaction.
func (w *world) retained(t *testing.T, topic contract.Topic) string {
	t.Helper()
	newest, all := map[string]string{}, ""
	w.eachRecord(t, topic.Name, func(record bus.Record) {
		newest[string(record.Key)] = textOf(record)
		if len(record.Value) == 0 {
			delete(newest, string(record.Key))
		}
		all += textOf(record)
	})
	switch {
	case topic.Config["cleanup.policy"] == "compact":
		return strings.Join(slices.Collect(maps.Values(newest)), "")
	case topic.Config["retention.ms"] != "-1":
		return ""
	}
	return all
}

// An agingBroker is a broker whose clock the test moves.
type agingBroker struct {
	*kafka.Broker

	ahead atomic.Int64
}

// startAging starts one on a directory; nil if the tests are given a
// broker, which uses the machine's clock.
func startAging(t *testing.T) *agingBroker {
	t.Helper()
	if os.Getenv(testenv.EnvBrokers) != "" {
		return nil
	}
	b := &agingBroker{}
	b.ahead.Store(int64(24 * time.Hour))
	var err error
	b.Broker, err = kafka.Start(kafka.Config{
		Dir: t.TempDir(), Open: true, Logger: slog.New(slog.DiscardHandler), SegmentBytes: 4 << 10,
		Clock: func() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) },
	})
	testenv.Must(t, err)
	t.Cleanup(func() { testenv.Must(t, b.Close()) })
	return b
}

// addresses are those of the broker, or of the given one.
func (b *agingBroker) addresses(t *testing.T) []string {
	t.Helper()
	if b == nil {
		return kafkatest.Brokers(t)
	}
	return []string{b.Addr()}
}

// expire lets the retention of all topics pass.
func (b *agingBroker) expire(t *testing.T) {
	t.Helper()
	testenv.Must(t, b.Retain(t.Context())) // what is young gets its age
	b.ahead.Add(int64(100 * 24 * time.Hour))
	testenv.Must(t, b.Retain(t.Context()))
	testenv.Must(t, b.Compact(t.Context()))
}

// isForgottenOnTopics looks for the mark in all topics after their
// retention and compaction.
func (w *world) isForgottenOnTopics(t *testing.T, broker *agingBroker) {
	t.Helper()
	before := w.topics(t)
	if broker == nil { // its time can't pass: what compaction and retention leave is worked out
		for _, topic := range contract.Topics(1, time.Hour) {
			before["topic "+topic.Name] = w.retained(t, topic)
		}
		isUnmarked(t, before)
		return
	}
	broker.expire(t)
	after := w.topics(t)
	isUnmarked(t, after)
	for _, place := range []string{"topic " + contract.TopicLogs, "topic " + contract.TopicGrouping} {
		if before[place] == "" || after[place] != "" {
			t.Errorf("%s held %d bytes, and %d once its time was over", place, len(before[place]), len(after[place]))
		}
	}
}
