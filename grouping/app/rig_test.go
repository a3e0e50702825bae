package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping/app"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

const partitions = 4

// noon is the default time of events.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// A rig is a broker with the topics of other
// services, a database, and their events.
type rig struct {
	*contracttest.Others
	t      testing.TB
	config app.Config
	pool   *pgxpool.Pool

	mu      sync.Mutex
	facts   map[string]contract.ErrorGroupCreated // by id, as the relay repeats facts after an interruption
	decided map[string]contract.ErrorGroupChanged // the same, by type and id
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, facts: map[string]contract.ErrorGroupCreated{}, decided: map[string]contract.ErrorGroupChanged{}}
	r.config.Config = service.Config{Servers: service.Servers{Brokers: kafkatest.Brokers(t), DatabaseURL: httpapi.Secret(pgtest.URL(t, postgres.Schema, postgres.Migrations()...))}}
	r.config.BatchWait = 10 * time.Millisecond
	r.Others = contracttest.New(t, "grouping", r.config.Brokers, partitions)
	pool, err := pg.Open(t.Context(), r.config.DatabaseURL.Reveal(), postgres.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r.pool = pool
	r.Consume(contract.TopicGrouping, r.fact)
	return r
}

// fact reads a record of weir.grouping.v1.
func (r *rig) fact(record bus.Record) {
	if name := record.Header(contract.HeaderType); name == contract.TypeErrorsChangeReported {
		return
	} else if name != contract.TypeErrorGroupCreated {
		var fact contract.ErrorGroupChanged
		if err := json.Unmarshal(record.Value, &fact); err != nil || fact.Status == "" {
			r.t.Errorf("cannot read the fact %s: %v", record.Value, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.decided[name+" "+record.Header(contract.HeaderID)] = fact
		return
	}
	var fact contract.ErrorGroupCreated
	if err := json.Unmarshal(record.Value, &fact); err != nil || record.Header(contract.HeaderType) != contract.TypeErrorGroupCreated {
		r.t.Errorf("cannot read the fact %s: %v", record.Value, err)
	}
	if fact.Entry == "" || !strings.HasPrefix(fact.Cause, "Its first error came") {
		r.t.Errorf("a group without its cause: %s", record.Value)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts[record.Header(contract.HeaderID)] = fact
}

// start runs one more process and returns
// a function that stops it gracefully.
func (r *rig) start() (process *app.App, stop func()) {
	r.t.Helper()
	process, err := app.New(r.t.Context(), r.config, testenv.Logger(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	return process, testenv.Run(r.t, process.Run)
}

// project publishes a project and returns an API key of its organization.
func (r *rig) project(organization, project string) (key string) {
	r.t.Helper()
	r.PublishEvent(contract.TopicTenants, contract.TypeProjectCreated, project,
		contract.ProjectCreated{Organization: organization, Project: project, Name: project, CreatedAt: noon})
	return r.Issue(contract.Credential{Kind: contract.CredentialAPIKey, Organization: organization, Project: project, Environment: "prod"})
}

// logs is a LogsAccepted of one part. Each text is
// a whole entry; errors is how many have a payload.
func logs(organization, project string, errors int, entries ...string) contract.LogsAccepted {
	lines := strings.Join(entries, "\n") + "\n"
	return contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: 1, Organization: organization, Project: project,
		Environment: "prod", Key: "key", Source: "weir/ingest", Time: time.Now(), Entries: len(entries),
		Bytes: int64(len(lines) - len(entries)), Errors: errors, Lines: []byte(lines),
	}
}

// failure is an entry with an error of a type, that long after noon.
func failure(typ string, after time.Duration) string {
	text, err := json.Marshal(map[string]any{"timestamp": noon.Add(after).Format(time.RFC3339Nano), "level": "error", "message": "an entry",
		"error": map[string]any{"type": typ, "message": "it broke", "stack_trace": stack(typ)}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// stack is a Python trace that is different for each type.
func stack(typ string) []string {
	return []string{
		"Traceback (most recent call last):",
		`  File "/app/shop/cart.py", line 12, in ` + strings.ToLower(typ),
		"    return total(items)",
		typ + ": it broke",
	}
}

// awaitApplied waits until all published records are applied or parked.
func (r *rig) awaitApplied() {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		applied := contract.Positions{}
		var partition int
		var next int64
		err := pg.InTxAsSystem(r.t.Context(), r.pool, func(tx pgx.Tx) error {
			rows, err := tx.Query(r.t.Context(), `SELECT partition, next FROM bus_positions WHERE group_name = $1`, contract.GroupGrouping)
			if err != nil {
				return err
			}
			_, err = pgx.ForEachRow(rows, []any{&partition, &next}, func() error {
				applied[partition] = next
				return nil
			})
			if err != nil {
				return err
			}
			var behind int
			if err := tx.QueryRow(r.t.Context(), `SELECT count(*) FROM bus_deferred`).Scan(&behind); err != nil || behind > 0 {
				return fmt.Errorf("%d organizations are behind in a partition: %w", behind, err)
			}
			return nil
		})
		for partition, end := range r.End() {
			if applied[partition] < end {
				return fmt.Errorf("partition %d is applied to %d of %d: %w", partition, applied[partition], end, err)
			}
		}
		return err
	})
}

// number queries the database for a number.
func (r *rig) number(query string, args ...any) (n int) {
	r.t.Helper()
	err := pg.InTxAsSystem(r.t.Context(), r.pool, func(tx pgx.Tx) error { return tx.QueryRow(r.t.Context(), query, args...).Scan(&n) })
	if err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// awaitFacts waits until n facts are published,
// and returns the titles of the groups, sorted.
func (r *rig) awaitFacts(n int) (titles []string) {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.facts) < n {
			return fmt.Errorf("%d facts of %d", len(r.facts), n)
		}
		titles = nil
		for _, fact := range r.facts {
			titles = append(titles, fact.Organization+" "+fact.Title)
		}
		slices.Sort(titles)
		return nil
	})
	return titles
}

// awaitDecided waits until a decision of a type is published, and returns all of it.
func (r *rig) awaitDecided(name string) (facts []contract.ErrorGroupChanged) {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		facts = nil
		for id, fact := range r.decided {
			if strings.HasPrefix(id, name+" ") {
				facts = append(facts, fact)
			}
		}
		if len(facts) == 0 {
			return fmt.Errorf("no %s among %d facts", name, len(r.decided))
		}
		return nil
	})
	return facts
}

// decide sends a decision about a group.
func decide(t testing.TB, process *app.App, key, group, body string) {
	t.Helper()
	request := httptest.NewRequest(http.MethodPatch, "/v1/error-groups/"+group, strings.NewReader(body))
	request.Header.Set("X-Api-Key", key)
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	openapitest.Handler(t, process.Handler()).ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		t.Fatalf("%s answered %d %s", body, recorder.Code, recorder.Body)
	}
}

type group struct {
	ID, Type             string
	Count                int64
	FirstSeen            time.Time `json:"first_seen"`
	LastSeen             time.Time `json:"last_seen"`
	Levels, Environments []string
	Occurrences          []any
}

// page is a list of groups, or a problem.
type page struct {
	Items        []group
	Code, Detail string
}

// get reads path into an answer and returns the status.
func get(t testing.TB, process *app.App, key, path string, into any) int {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	if key != "" {
		request.Header.Set("X-Api-Key", key)
	}
	recorder := httptest.NewRecorder()
	openapitest.Handler(t, process.Handler()).ServeHTTP(recorder, request)
	body, _ := io.ReadAll(recorder.Body)
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%s answered %d %s: %v", path, recorder.Code, body, err)
	}
	return recorder.Code
}

// list reads the groups of a project.
func list(t testing.TB, process *app.App, key, project, query string) page {
	t.Helper()
	var found page
	if status := get(t, process, key, "/v1/projects/"+project+"/error-groups"+query, &found); status != http.StatusOK {
		t.Fatalf("%s %s answered %d %s: %s", project, query, status, found.Code, found.Detail)
	}
	return found
}

// counts are the counts of a project's groups by type.
func counts(t testing.TB, process *app.App, key, project string) map[string]int64 {
	t.Helper()
	byType := map[string]int64{}
	for _, g := range list(t, process, key, project, "?limit=1000").Items {
		if _, twice := byType[g.Type]; twice {
			t.Errorf("there are two groups of type %q", g.Type)
		}
		byType[g.Type] = g.Count
	}
	return byType
}

func awaitReady(t testing.TB, process *app.App) {
	t.Helper()
	testenv.Eventually(t, process.Ready)
}

// awaitKeys waits until a process has read API keys.
func awaitKeys(t testing.TB, process *app.App, keys ...string) {
	t.Helper()
	for _, key := range keys {
		testenv.Eventually(t, func() error {
			var problem page
			if status := get(t, process, key, "/v1/projects/none/error-groups", &problem); status != http.StatusNotFound {
				return fmt.Errorf("the key is answered with %d %s", status, problem.Code)
			}
			return nil
		})
	}
}
