package saved_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/saved"
	"github.com/weirlog/weir/ingest/internal/searches"
	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// A rig is a database with a clock, a log of one partition, and a store that
// counts what the test says.
type rig struct {
	t       *testing.T
	pool    *pgxpool.Pool
	service *saved.Service

	mu      sync.Mutex
	now     time.Time
	end     int64 // of the log
	entries func(organization string, search ingest.Search) (ingest.Counted, error)
	counted []string // organizations, in order
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, pool: pgtest.Open(t, postgres.Schema, postgres.Migrations()...), now: noon}
	directory := identity.NewDirectory()
	for _, project := range []string{"prj_1", "prj_2"} {
		created, _ := json.Marshal(contract.ProjectCreated{Organization: "org_1", Project: project, Name: project})
		testenv.Must(t, directory.Apply(contract.TypeProjectCreated, created))
	}
	for _, member := range []string{`{"organization":"org_1","member":"mem_1","name":"Ada","role":"owner"}`,
		`{"organization":"org_1","member":"mem_4","name":"Bob","role":"billing"}`, `{"organization":"org_2","member":"mem_3","name":"Eve","role":"owner"}`} {
		testenv.Must(t, directory.Apply(contract.TypeMemberAdded, []byte(member)))
	}
	r.service = &saved.Service{
		Pool: r.pool, Directory: directory, MaxSearches: 3, MaxAlerts: 2, Publish: bus.SaveNotice, Published: func() {},
		NewID: func() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }, Clock: r.clock,
	}
	r.entries = func(string, ingest.Search) (ingest.Counted, error) { return entries(0), nil }
	r.stored(0)
	return r
}

func entries(n int64) (counted ingest.Counted) {
	counted.Levels[ingest.SeverityInfo] = n
	return counted
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// stored notes how far the log store is.
func (r *rig) stored(next int64) {
	r.t.Helper()
	_, err := r.pool.Exec(r.t.Context(), `INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner) VALUES ('ingest.log-store', $1, 0, $2, 1, '')
		ON CONFLICT (group_name, topic, partition) DO UPDATE SET next = excluded.next`, contract.TopicLogs, next)
	testenv.Must(r.t, err)
}

func (r *rig) Page(context.Context, string, ingest.Search) (*searches.Answer, error) {
	found := ingest.Found{Stored: ingest.Stored{Text: []byte(`{"message":"` + strings.Repeat("é", 150) + `"}`)}}
	return &searches.Answer{Result: ingest.Result{Found: []ingest.Found{found}}}, nil
}

func (r *rig) Count(_ context.Context, organization string, count ingest.Count, _ int) (ingest.Counted, error) {
	r.mu.Lock()
	r.counted = append(r.counted, organization)
	r.mu.Unlock()
	return r.entries(organization, count.Search)
}

// evaluator is one replica.
func (r *rig) evaluator() *saved.Evaluator {
	return saved.NewEvaluator(saved.EvaluatorConfig{
		Pool: r.pool, Service: r.service, Searches: &searches.Service{Directory: r.service.Directory, Searches: r}, Group: contract.GroupLogStore,
		Ends:  func(context.Context) (ingest.Positions, error) { return ingest.Positions{0: r.end}, nil },
		Ready: func() error { return nil }, Clock: r.clock, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
}

func (r *rig) run(e *saved.Evaluator) {
	r.t.Helper()
	testenv.Must(r.t, e.RunOnce(r.t.Context()))
}

var (
	owner  = identity.Principal{ID: "ses_1", Organization: "org_1", Member: "mem_1", Scopes: []string{identity.RoleScope("owner")}}
	viewer = identity.Principal{ID: "ses_2", Organization: "org_1", Member: "mem_2", Scopes: []string{identity.RoleScope("viewer")}}
	other  = identity.Principal{ID: "ses_3", Organization: "org_2", Member: "mem_3", Scopes: []string{identity.RoleScope("owner")}}
	apiKey = identity.Principal{ID: "key_1", Organization: "org_1", Project: "prj_1"}
	narrow = identity.Principal{ID: "key_2", Organization: "org_1", Project: "prj_2", Access: contract.AccessProject}
)

func (r *rig) save(who identity.Principal, name string) ingest.SavedSearch {
	r.t.Helper()
	made, err := r.service.Create(r.t.Context(), who, ingest.SavedSearch{Name: name, Query: "checkout", Last: "1h"}, true, "")
	testenv.Must(r.t, err)
	return made
}

var rule = ingest.AlertRule{Every: time.Minute, Window: 5 * time.Minute, Threshold: 10, Times: 1, Roles: []string{"owner"}}

// absence fires when nothing came.
var absence = ingest.AlertRule{Every: time.Minute, Window: 5 * time.Minute, Fewer: true, Threshold: 1, Times: 1}

func (r *rig) alert(who identity.Principal, name string, of ingest.AlertRule) string {
	r.t.Helper()
	search := r.save(who, name)
	if _, err := r.service.SetAlert(r.t.Context(), who, search.ID, of, 0); err != nil {
		r.t.Fatal(err)
	}
	return search.ID
}

// facts are the types of the facts in the outbox.
func (r *rig) facts() (types []string) {
	r.t.Helper()
	err := pg.ReadAsSystem(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(r.t.Context(), `SELECT type || coalesce(' ' || (body->>'reason'), '') FROM facts ORDER BY position`)
		if err != nil {
			return err
		}
		types, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	testenv.Must(r.t, err)
	for i, of := range types {
		types[i] = strings.TrimPrefix(of, "weir.alerts.v1.search_alert_")
	}
	return types
}

func (r *rig) told(want ...string) {
	r.t.Helper()
	if got := r.facts(); !slices.Equal(got, want) {
		r.t.Errorf("told %q, want %q", got, want)
	}
}

// Two replicas evaluate side by side: each transition is told once.
func TestTransitionsAreToldOnce(t *testing.T) {
	r := newRig(t)
	id := r.alert(owner, "Checkout", rule)
	replicas := []*saved.Evaluator{r.evaluator(), r.evaluator(), r.evaluator()}
	for _, n := range []int64{0, 11, 12, 13, 3, 0, 11} {
		r.pass(time.Minute)
		r.entries = func(string, ingest.Search) (ingest.Counted, error) { return entries(n), nil }
		var all sync.WaitGroup
		for _, e := range replicas {
			all.Go(func() { r.run(e) })
		}
		all.Wait()
	}
	r.told("fired", "resolved", "fired")
	all, changes, err := r.service.History(t.Context(), owner, id)
	if err != nil || len(all) != 7 || len(changes) != 3 || !changes[0].Told || all[0].Entries != 11 {
		t.Errorf("the history has %d evaluations and %d changes: %+v, %v", len(all), len(changes), all, err)
	}
}

// A log store that is behind makes an alert on absence late, and never wrong.
func TestABackwardLogStoreIsNoAbsence(t *testing.T) {
	r := newRig(t)
	r.alert(owner, "Heartbeat", absence)
	r.entries = func(_ string, search ingest.Search) (ingest.Counted, error) {
		if to := search.To.Time(); to.After(noon.Add(50 * time.Second)) {
			t.Errorf("counted up to %s, which is not stored", to)
		}
		return entries(1), nil
	}
	e := r.evaluator()
	r.pass(time.Minute)
	r.run(e)
	r.end = 100 // accepted, and not stored
	for range 8 {
		r.pass(time.Minute)
		r.run(e)
	}
	if len(r.counted) != 1 {
		t.Errorf("evaluated %d times", len(r.counted))
	}
	r.entries = func(string, ingest.Search) (ingest.Counted, error) { return entries(0), nil }
	for range 30 {
		r.pass(time.Minute)
		r.run(e)
	}
	r.told("unevaluated Entries that were accepted are not stored yet.")

	r.stored(100)
	r.entries = func(string, ingest.Search) (ingest.Counted, error) { return entries(1), nil }
	for range 3 {
		r.pass(time.Minute)
		r.run(e)
	}
	r.told("unevaluated Entries that were accepted are not stored yet.", "resolved")
}

// After an outage of Weir senders have five minutes to come back.
func TestAnOutageIsNoAbsence(t *testing.T) {
	r := newRig(t)
	r.alert(owner, "Heartbeat", absence)
	r.alert(owner, "Errors", rule)
	r.entries = func(string, ingest.Search) (ingest.Counted, error) { return entries(11), nil }
	r.pass(time.Minute)
	r.run(r.evaluator())
	r.told("fired")
	r.pass(time.Hour)
	e := r.evaluator()
	r.entries = func(string, ingest.Search) (ingest.Counted, error) { return entries(0), nil }
	for range 5 {
		r.run(e)
		r.pass(time.Minute)
	}
	r.told("fired", "resolved")
	r.pass(time.Minute)
	r.run(e)
	r.told("fired", "resolved", "fired")
}

// Entries that an organization's lane holds back make its counts a part.
func TestDeferredEntriesAreNoAbsence(t *testing.T) {
	r := newRig(t)
	id := r.alert(owner, "Heartbeat", absence)
	err := pg.InTxAsSystem(t.Context(), r.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO bus_deferred (organization, group_name, topic, partition, topic_id, next, last, records, bytes, since)
			VALUES ('org_1', 'ingest.log-store', $1, 0, $2, 1, 2, 2, 2, now())`, contract.TopicLogs, uuid.NewString())
		return err
	})
	testenv.Must(t, err)
	r.pass(time.Minute)
	r.run(r.evaluator())
	r.told()
	if all, _, err := r.service.History(t.Context(), owner, id); err != nil || len(all) != 1 || all[0].Judgement != ingest.Unjudged || all[0].Reason == "" {
		t.Errorf("evaluated as %+v, %v", all, err)
	}
}

// A process that dies while it evaluates is replaced, and can't tell anything later.
func TestADeadEvaluatorIsReplaced(t *testing.T) {
	r := newRig(t)
	r.alert(owner, "Checkout", rule)
	r.pass(time.Minute)
	claimed := make(chan struct{})
	resume := make(chan struct{})
	r.entries = func(string, ingest.Search) (ingest.Counted, error) {
		close(claimed)
		<-resume
		return entries(11), nil
	}
	slow := make(chan error, 1)
	go func() { slow <- r.evaluator().RunOnce(t.Context()) }()
	select {
	case <-claimed:
	case err := <-slow:
		t.Fatalf("nothing was due: %v", err)
	}
	r.entries = func(string, ingest.Search) (ingest.Counted, error) { return entries(12), nil }
	next := r.evaluator()
	r.run(next)
	r.told()
	r.pass(3 * time.Minute)
	r.run(next)
	r.told("fired")
	close(resume)
	testenv.Must(t, <-slow)
	r.told("fired")
}

// What is edited while it is evaluated is evaluated again.
func TestAChangedSearchIsEvaluatedAgain(t *testing.T) {
	r := newRig(t)
	id := r.alert(owner, "Checkout", rule)
	r.pass(time.Minute)
	r.entries = func(string, ingest.Search) (ingest.Counted, error) {
		r.entries = func(string, ingest.Search) (ingest.Counted, error) { return entries(0), nil }
		_, err := r.service.Update(t.Context(), owner, ingest.SavedSearch{ID: id, Version: 1, Name: "Checkout", Query: "other"}, true)
		return entries(11), err
	}
	r.run(r.evaluator())
	r.told()
	if all, _, err := r.service.History(t.Context(), owner, id); err != nil || len(all) != 1 || all[0].Entries != 0 {
		t.Errorf("evaluated as %+v, %v", all, err)
	}
}

// One organization with many due alerts does not come before another's: each of
// its evaluations waits for the other's, so that how fast they are decides nothing.
func TestOrganizationsTakeTurns(t *testing.T) {
	r := newRig(t)
	r.service.MaxSearches, r.service.MaxAlerts = 50, 50
	for i := range 20 {
		r.alert(owner, fmt.Sprint("Alert ", i), rule)
	}
	r.pass(30 * time.Second)
	r.alert(other, "Checkout", rule)
	r.pass(time.Minute)
	patience, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	turn, under := make(chan struct{}), make(map[string]int)
	r.entries = func(organization string, _ ingest.Search) (ingest.Counted, error) {
		r.mu.Lock()
		if under[organization]++; under[organization] > 1 {
			t.Errorf("two alerts of %s are evaluated at once", organization)
		}
		r.mu.Unlock()
		if organization == "org_2" {
			close(turn)
		}
		select {
		case <-turn:
			time.Sleep(time.Millisecond)
		case <-patience.Done():
			t.Error("the other organization waits for its turn")
		}
		r.mu.Lock()
		under[organization]--
		r.mu.Unlock()
		return entries(0), nil
	}
	r.run(r.evaluator())
	if len(r.counted) != 21 {
		t.Errorf("%d alerts were evaluated", len(r.counted))
	}
}

// Receivers hear of a test at most once a minute, and of examples only if people want them.
func TestNotices(t *testing.T) {
	r := newRig(t)
	with := rule
	with.Examples = 1
	id := r.alert(owner, "Checkout", with)
	testenv.Must(t, r.service.Test(t.Context(), owner, id))
	if err := r.service.Test(t.Context(), owner, id); !errors.Is(err, postgres.ErrTested) {
		t.Errorf("a second test: %v", err)
	}
	r.pass(time.Minute)
	r.entries = func(string, ingest.Search) (ingest.Counted, error) { return entries(11), nil }
	r.run(r.evaluator())
	var bodies []contract.SearchAlert
	err := pg.ReadAs(t.Context(), r.pool, "org_1", func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT body FROM facts ORDER BY position`)
		if err != nil {
			return err
		}
		bodies, err = pgx.CollectRows(rows, pgx.RowTo[contract.SearchAlert])
		return err
	})
	if err != nil || len(bodies) != 2 || !bodies[0].Test || bodies[1].Test {
		t.Fatalf("told %+v, %v", bodies, err)
	}
	fact := bodies[1]
	if want := strings.Repeat("é", 100) + "…"; len(fact.Examples) != 1 || fact.Examples[0] != want {
		t.Errorf("examples are %q", fact.Examples)
	}
	if fact.Entries != 11 || fact.To.Sub(fact.From) != 5*time.Minute || fact.MailTo.Roles[0] != "owner" ||
		!strings.HasPrefix(fact.Path, "/console/logs?from=2026-11-21T11%3A55%3A50Z&q=checkout&saved="+id) {
		t.Errorf("told %+v", fact)
	}
}

func TestWhoMayWhat(t *testing.T) {
	r := newRig(t)
	shared := r.save(owner, "Checkout")
	r.save(apiKey, "By a key")
	own, err := r.service.Create(t.Context(), viewer, ingest.SavedSearch{Name: "Mine", Project: "prj_1"}, false, "")
	if err != nil || own.Owner != "mem_2" {
		t.Fatalf("a viewer's own search: %+v, %v", own, err)
	}
	fails := func(what string, got, want error) {
		t.Helper()
		if !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	ctx := t.Context()
	_, err = r.service.Create(ctx, viewer, ingest.SavedSearch{Name: "Ours"}, true, "")
	fails("a viewer shares", err, saved.ErrMayNot)
	_, err = r.service.Create(ctx, owner, ingest.SavedSearch{Name: "checkout"}, true, "")
	fails("the name again", err, postgres.ErrNameTaken)
	_, err = r.service.Create(ctx, owner, ingest.SavedSearch{Name: "X", Project: "prj_9"}, true, "")
	fails("an unknown project", err, saved.ErrNoProject)
	r.save(owner, "Third")
	_, err = r.service.Create(ctx, owner, ingest.SavedSearch{Name: "Fourth"}, true, "")
	fails("one too many", err, postgres.TooMany{What: "saved searches", Limit: 3})
	if _, err = r.service.Create(ctx, owner, ingest.SavedSearch{Name: "Fourth", Project: "prj_2"}, true, ""); err != nil {
		t.Errorf("of another project: %v", err)
	}
	_, err = r.service.Find(ctx, owner, own.ID)
	fails("another's own search", err, postgres.ErrNoSearch)
	_, err = r.service.Find(ctx, other, shared.ID)
	fails("another organization's", err, postgres.ErrNoSearch)
	_, err = r.service.Find(ctx, narrow, shared.ID)
	fails("all projects, by a key of one", err, postgres.ErrNoSearch)
	_, err = r.service.SetAlert(ctx, viewer, own.ID, rule, 0)
	fails("an alert on a private search", err, saved.ErrPrivate)
	_, err = r.service.SetAlert(ctx, viewer, shared.ID, rule, 0)
	fails("a viewer's alert", err, saved.ErrMayNot)
	_, err = r.service.Delete(ctx, viewer, shared.ID, 0)
	fails("a viewer deletes", err, saved.ErrMayNot)
	for who, want := range map[*identity.Principal]int{&owner: 4, &viewer: 5, &apiKey: 4, &narrow: 1, &other: 0} {
		if found, err := r.service.List(ctx, *who, postgres.SearchFilter{Limit: 10}); err != nil || len(found) != want {
			t.Errorf("%s sees %d, want %d: %v", who.ID, len(found), want, err)
		}
	}
}

// The second of two who change the same thing learns of the first.
func TestVersions(t *testing.T) {
	r := newRig(t)
	ctx, s := t.Context(), r.save(owner, "Checkout")
	changed, err := r.service.Update(ctx, owner, ingest.SavedSearch{ID: s.ID, Version: s.Version, Name: "Checkout fails"}, true)
	if err != nil || changed.Version != 2 || !changed.CreatedAt.Equal(s.CreatedAt) {
		t.Fatalf("changed to %+v, %v", changed, err)
	}
	if _, err := r.service.Update(ctx, apiKey, ingest.SavedSearch{ID: s.ID, Version: s.Version, Name: "Other"}, true); !errors.Is(err, postgres.ErrSearchChanged) {
		t.Errorf("the second: %v", err)
	}
	if _, err := r.service.Delete(ctx, owner, s.ID, s.Version); !errors.Is(err, postgres.ErrSearchChanged) {
		t.Errorf("deleting an old version: %v", err)
	}
	set, err := r.service.SetAlert(ctx, owner, s.ID, rule, 0)
	if err != nil || set.Version != 1 {
		t.Fatalf("set %+v, %v", set, err)
	}
	if _, err := r.service.SetAlert(ctx, owner, s.ID, rule, 0); !errors.Is(err, postgres.ErrSearchChanged) {
		t.Errorf("a second alert: %v", err)
	}
	if set, err = r.service.SetAlert(ctx, owner, s.ID, absence, 1); err != nil || set.Version != 2 || !set.Fewer {
		t.Errorf("changed to %+v, %v", set, err)
	}
	if _, err := r.service.Update(ctx, owner, ingest.SavedSearch{ID: s.ID, Version: 2, Name: "Mine"}, false); !errors.Is(err, saved.ErrPrivate) {
		t.Errorf("a private search with an alert: %v", err)
	}
	if _, err := r.service.Delete(ctx, owner, s.ID, 2); err != nil {
		t.Error(err)
	}
	if _, err := r.service.Alert(ctx, owner, s.ID); !errors.Is(err, postgres.ErrNoSearch) {
		t.Errorf("the alert of a deleted search: %v", err)
	}
	again, err := r.service.Create(ctx, apiKey, ingest.SavedSearch{Name: "By a key"}, true, "once")
	testenv.Must(t, err)
	if twice, err := r.service.Create(ctx, apiKey, ingest.SavedSearch{Name: "By a key"}, true, "once"); err != nil || twice.ID != again.ID {
		t.Errorf("the same key made %s and %s, %v", again.ID, twice.ID, err)
	}
}

// An alert names members of its organization who read logs, and no others.
func TestAlertsNameMembersWhoReadLogs(t *testing.T) {
	r := newRig(t)
	s := r.save(owner, "Checkout")
	for _, member := range []string{"mem_9", "mem_3", "mem_4", "Ada", ""} {
		wrong := rule
		wrong.Members = []string{"mem_1", member}
		_, err := r.service.SetAlert(t.Context(), owner, s.ID, wrong, 0)
		var invalid ingest.Invalid
		if !errors.As(err, &invalid) || invalid.Field != "mail_members" || !strings.Contains(invalid.Detail, strconv.Quote(member)) {
			t.Errorf("of %q: %v", member, err)
		}
	}
	right := rule
	right.Members = []string{"mem_1"}
	if _, err := r.service.SetAlert(t.Context(), owner, s.ID, right, 0); err != nil {
		t.Error(err)
	}
}

// What a member alone has seen goes with the member; what is shared stays.
func TestSearchesOfRemovedMembers(t *testing.T) {
	r := newRig(t)
	ours := r.save(owner, "Ours")
	for _, who := range []identity.Principal{owner, viewer} {
		if _, err := r.service.Create(t.Context(), who, ingest.SavedSearch{Name: "Mine"}, false, ""); err != nil {
			t.Fatal(err)
		}
	}
	value, _ := json.Marshal(contract.MemberRemoved{Organization: "org_1", Member: "mem_1"})
	removed := weirbus.Record{Value: value, Headers: []weirbus.Header{{Key: contract.HeaderType, Value: []byte(contract.TypeMemberRemoved)}}}
	err := pg.InTxAsSystem(t.Context(), r.pool, func(tx pgx.Tx) error { return bus.ConsumeTenants(t.Context(), tx, []weirbus.Record{removed, {}}) })
	testenv.Must(t, err)
	if found, err := r.service.List(t.Context(), owner, postgres.SearchFilter{Limit: 10}); err != nil || len(found) != 1 || found[0].ID != ours.ID {
		t.Errorf("the removed member sees %+v, %v", found, err)
	}
	if found, err := r.service.List(t.Context(), viewer, postgres.SearchFilter{Limit: 10}); err != nil || len(found) != 2 {
		t.Errorf("another sees %+v, %v", found, err)
	}
}
