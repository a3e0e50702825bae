package rejected

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/testenv"
)

// A rig is a recorder whose time stands.
type rig struct {
	*Recorder
	now time.Time
}

func newRig() *rig {
	r := &rig{now: time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC)}
	r.Recorder = NewRecorder(Config{Clock: func() time.Time { return r.now }, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	return r
}

func who(organization, key string) identity.Principal {
	return identity.Principal{Organization: organization, Project: "prj_" + organization, ID: key}
}

// rejection has so many entries and samples of so many bytes.
func rejection(code string, entries, samples, bytes int) ingest.Rejection {
	r := ingest.Rejection{Code: ingest.Code(code), Entries: int64(entries)}
	for range samples {
		r.Samples = append(r.Samples, ingest.Sample{Pointer: "/logs/0", Detail: "d", Fix: "f", Text: []byte(strings.Repeat("x", bytes))})
	}
	return r
}

func (r *rig) lostBy(reason string) float64 {
	return testutil.ToFloat64(r.lost.WithLabelValues(reason))
}

// Of a project whose rules redact, no sample is kept.
func TestSamplesAreNotRedacted(t *testing.T) {
	r := newRig()
	r.Redacts = func(project string) bool { return project == "prj_o" }
	given := rejection("a", 10, 2, 5)
	r.Note(who("o", "k"), given)
	r.Note(who("other", "k"), given)
	for organization, samples := range map[string]int{"o": 0, "other": 2} {
		for from, counted := range r.organizations[organization].rejected {
			if counted.Entries != 10 || len(counted.Samples) != samples {
				t.Errorf("%+v: %d entries, %d samples, want %d", from, counted.Entries, len(counted.Samples), samples)
			}
		}
	}
}

// What came of a key and code is one row, with the first three samples.
func TestNote(t *testing.T) {
	r := newRig()
	for range 5 {
		r.Note(who("o", "k"), rejection("a", 10, 2, 5), rejection("b", 1, 0, 0))
		r.now = r.now.Add(time.Second)
	}
	r.Note(who("o", "k2"), rejection("a", 1, 1, 5000))
	taken := r.take()
	if len(taken) != 3 || taken[0].Entries != 50 || len(taken[0].Samples) != 3 || taken[1].Entries != 5 || len(taken[2].Samples[0].Text) != ingest.SampleBytes {
		t.Fatalf("got %+v", taken)
	}
	if at := taken[0].Samples[2].At; !at.Equal(taken[0].LastAt.Add(-3*time.Second)) || taken[0].Key != "k" || taken[0].Project != "prj_o" {
		t.Errorf("got %+v", taken[0])
	}
	if left := r.take(); len(left) != 0 || r.bytes != 0 || r.counters != 0 {
		t.Errorf("it still has %v", left)
	}
	var none *Recorder
	none.Note(who("o", "k"), rejection("a", 1, 1, 1))
}

// One organization has at most its share, in which each key and code has a
// sample before another has its second.
func TestShareOfOne(t *testing.T) {
	r := newRig()
	for key := range 1000 {
		r.Note(who("flood", fmt.Sprint(key)), rejection("a", 7, 3, 1024))
	}
	sampled, bytes := 0, 0
	taken := r.take()
	for _, of := range taken {
		if len(of.Samples) > 0 {
			sampled++
		}
		for _, sample := range of.Samples {
			bytes += len(sample.Text)
		}
	}
	if len(taken) != maxOfOne || bytes > bytesOne || sampled < 30 {
		t.Errorf("%d keys, %d with samples of %d bytes", len(taken), sampled, bytes)
	}
	if lost := r.lostBy("full"); lost != float64((1000-maxOfOne)*7) {
		t.Errorf("%g are counted as lost", lost)
	}
}

// Whatever others send, an organization has a few keys with a sample each.
func TestFloodOfOthers(t *testing.T) {
	r := newRig()
	for o := range 100 {
		for key := range maxOfOne {
			r.Note(who(fmt.Sprintf("flood %d", o), fmt.Sprint(key)), rejection("a", 1, 3, 1024))
		}
	}
	if r.bytes > maxBytes+100*bytesFew || r.counters > maxCounters+100*fewOfOne {
		t.Errorf("%d bytes, %d counters", r.bytes, r.counters)
	}
	r.Note(who("quiet", "k"), rejection("a", 1, 1, 1024), rejection("b", 1, 1, 1024))
	found := 0
	for _, of := range r.take() {
		if of.Organization == "quiet" && len(of.Samples) == 1 {
			found++
		}
	}
	if found != 2 {
		t.Errorf("the quiet one has %d of 2", found)
	}
}

// A store is a rig with a database, and who reads it.
type store struct {
	*rig
	service *Service
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{rig: newRig()}
	s.Pool = pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	directory := identity.NewDirectory()
	for _, organization := range []string{"a", "b"} {
		created := fmt.Appendf(nil, `{"organization":%q,"project":"prj_%s","name":"Shop"}`, organization, organization)
		testenv.Must(t, directory.Apply(contract.TypeProjectCreated, created))
	}
	s.service = &Service{Pool: s.Pool, Searches: &searches.Service{Directory: directory}, Clock: s.Clock}
	return s
}

func (s *store) save(t *testing.T) { t.Helper(); testenv.Must(t, s.Save(t.Context())) }

func (s *store) list(t *testing.T, organization string, filter postgres.RejectedFilter) []ingest.Rejected {
	t.Helper()
	if filter.Limit = 10; filter.Project == "" {
		filter.Project = "prj_" + organization
	}
	found, err := s.service.List(t.Context(), who(organization, "reader"), filter)
	testenv.Must(t, err)
	return found
}

// Counts add up over hours and replicas, and the newest five samples are kept.
func TestSave(t *testing.T) {
	s := newStore(t)
	another := newRig()
	another.Pool = s.Pool
	for i := range 6 {
		s.Note(who("a", "k"), rejection("missing_field", 2, 1, i+1), rejection("invalid_json", 1, 0, 0))
		s.Note(who("b", "k"), rejection("missing_field", 1, 1, 9))
		s.save(t)
		s.now = s.now.Add(20 * time.Minute)
	}
	another.Note(who("a", "k"), rejection("missing_field", 100, 0, 0)) // by a clock that is behind
	testenv.Must(t, another.Save(t.Context()))
	got := s.list(t, "a", postgres.RejectedFilter{})
	if len(got) != 2 || got[0].Code != "invalid_json" || got[0].Entries != 6 || got[1].Entries != 112 || len(got[1].Samples) != 5 || len(got[0].Samples) != 0 {
		t.Fatalf("got %+v", got)
	}
	if newest := got[1].Samples[0]; len(newest.Text) != 6 || !newest.At.Equal(got[1].LastAt) || newest.Pointer != "/logs/0" || newest.Detail != "d" || newest.Fix != "f" {
		t.Errorf("the newest is %+v, the last was at %s", newest, got[1].LastAt)
	}
	for _, filter := range []postgres.RejectedFilter{{Key: "k2"}, {Code: "a"}, {After: postgres.KeyCode{Key: "k", Code: "missing_field"}}} {
		if got := s.list(t, "a", filter); len(got) != 0 {
			t.Errorf("%+v finds %+v", filter, got)
		}
	}
	if got := s.list(t, "b", postgres.RejectedFilter{Key: "k", Code: "missing_field"}); len(got) != 1 || got[0].Entries != 6 {
		t.Errorf("another organization has %+v", got)
	}
	if _, err := s.service.List(t.Context(), who("b", "k"), postgres.RejectedFilter{Project: "prj_a", Limit: 1}); !errors.Is(err, searches.ErrNoProject) {
		t.Errorf("another's project: %v", err)
	}
}

// What is a day old is gone for readers at once, and from the tables by the pruner.
func TestRetention(t *testing.T) {
	s := newStore(t)
	s.Note(who("a", "old"), rejection("invalid_level", 1, 1, 5))
	s.save(t)
	s.now = s.now.Add(24*time.Hour + time.Minute)
	s.Note(who("a", "new"), rejection("invalid_level", 1, 1, 5))
	s.save(t)
	if got := s.list(t, "a", postgres.RejectedFilter{}); len(got) != 1 || got[0].Key != "new" {
		t.Errorf("got %+v", got)
	}
	pruner := prune.New(prune.Config{Pool: s.Pool, Tables: postgres.RejectedTables, Clock: s.Clock, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	testenv.Must(t, pruner.RunOnce(t.Context()))
	if counts, samples := s.rows(t); counts != 1 || samples != 1 {
		t.Errorf("%d and %d rows are left", counts, samples)
	}
}

func (s *store) rows(t *testing.T) (counts, samples int) {
	t.Helper()
	testenv.Must(t, pg.ReadAsSystem(t.Context(), s.Pool, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM rejected_counts), (SELECT count(*) FROM rejected_samples)`).Scan(&counts, &samples)
	}))
	return counts, samples
}

// Nothing is saved of what is deleted meanwhile, and what one organization
// sends is not seen as another.
func TestDeletedAndIsolated(t *testing.T) {
	s := newStore(t)
	s.Note(who("a", "k"), rejection("invalid_level", 1, 1, 5))
	s.Note(who("b", "k"), rejection("invalid_level", 1, 1, 5))
	testenv.Must(t, pg.InTxAsSystem(t.Context(), s.Pool, func(tx pgx.Tx) error {
		return erasure.Begin(t.Context(), tx, erasure.Deletion{Organization: "a", Project: "prj_a"}, s.now, s.now)
	}))
	s.save(t)
	if counts, samples := s.rows(t); counts != 1 || samples != 1 {
		t.Errorf("%d and %d rows", counts, samples)
	}
	testenv.Must(t, pg.ReadAs(t.Context(), s.Pool, "a", func(tx pgx.Tx) error {
		found, err := postgres.RejectedEntries(t.Context(), tx, "b", postgres.RejectedFilter{Project: "prj_b", Limit: 10})
		if len(found) > 0 {
			t.Errorf("a sees %+v", found)
		}
		return err
	}))
}

// While the database is away, what is gathered waits.
func TestNoDatabase(t *testing.T) {
	s := newStore(t)
	pool := s.Pool
	closed := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	closed.Close()
	s.Pool = closed
	s.Note(who("a", "k"), rejection("invalid_level", 3, 1, 5))
	if err := s.Save(t.Context()); err == nil {
		t.Fatal("it was saved nowhere")
	}
	s.Note(who("a", "k"), rejection("invalid_level", 4, 1, 5))
	s.Pool = pool
	s.save(t)
	s.save(t)
	if got := s.list(t, "a", postgres.RejectedFilter{}); len(got) != 1 || got[0].Entries != 7 || s.lostBy("unsaved") != 0 {
		t.Errorf("got %+v", got)
	}
}
