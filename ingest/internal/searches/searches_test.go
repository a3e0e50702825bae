package searches_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/limitertest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// A desk is a store that finds what it is given. It does the work of the
// context meanwhile.
type desk struct {
	found []ingest.Found
	asked ingest.Search
	mu    sync.Mutex
}

// workKey is that of the work in a context.
type workKey struct{}

func (d *desk) Search(ctx context.Context, _ pg.Organization, search ingest.Search) (ingest.Result, error) {
	d.mu.Lock()
	d.asked = search
	d.mu.Unlock()
	if work, ok := ctx.Value(workKey{}).(func()); ok {
		work()
	}
	return ingest.Result{Found: d.found}, nil
}

func (d *desk) Count(ctx context.Context, organization pg.Organization, count ingest.Count, _ int) (ingest.Counted, error) {
	_, err := d.Search(ctx, organization, count.Search)
	return ingest.Counted{}, err
}

func newSearches(d *desk, answerBytes int64) *searches.Searches {
	return searches.New(searches.Config{Store: d, Concurrency: 4, AnswerBytes: answerBytes, Metrics: prometheus.NewRegistry()})
}

// Searches take turns by organization.
func TestOrganizationsTakeTurns(t *testing.T) {
	s := newSearches(&desk{}, 1<<30)
	limitertest.Check(t, 4, 32, func(ctx context.Context, organization string, work func()) error {
		answer, err := s.Page(context.WithValue(ctx, workKey{}, work), organization, ingest.Search{Limit: 1})
		if err == nil {
			answer.Close()
		}
		return err
	})
}

// Unread answers hold memory of their own organization, and never all of it.
func TestAnswersHaveABudget(t *testing.T) {
	d := &desk{}
	d.found = []ingest.Found{{Stored: ingest.Stored{Text: make([]byte, 7<<20)}}}
	const limit = 64 << 20
	s := newSearches(d, limit)
	held := 0
	for {
		if _, err := s.Page(t.Context(), "noisy", ingest.Search{Limit: 1000}); err != nil {
			var problem *httpapi.Problem
			if !errors.As(err, &problem) || problem.Code != "overloaded" || problem.Header.Get("Retry-After") == "" {
				t.Fatal(err)
			}
			break
		}
		held += 7 << 20
	}
	if held > limit/3 {
		t.Errorf("one organization holds %d bytes of %d", held, limit)
	}
	d.found = nil
	answer, err := s.Page(t.Context(), "quiet", ingest.Search{Limit: 1000})
	if err != nil || d.asked.MaxBytes < ingest.MaxPageBytes {
		t.Fatalf("beside it another gets a page of %d bytes, %v", d.asked.MaxBytes, err)
	}
	answer.Close()
	answer.Close()
}

// A thirteenth organization beside twelve with unread answers is
// served, as are all after it.
func TestManySlowReadersRefuseNobody(t *testing.T) {
	d := &desk{}
	d.found = []ingest.Found{{Stored: ingest.Stored{Text: make([]byte, 1<<20-1000)}}}
	s := newSearches(d, 16<<20)
	for i := range 50 {
		answer, err := s.Page(t.Context(), fmt.Sprintf("slow-%d", i), ingest.Search{Limit: 1000})
		if err != nil {
			t.Fatalf("organization %d is refused: %v", i, err)
		}
		answer.AllowEviction(func() { go answer.Close() })
	}
}

// A seen finder records the project of the search.
type seen struct{ project string }

func (s *seen) Page(_ context.Context, _ string, search ingest.Search) (*searches.Answer, error) {
	s.project = search.Project
	return &searches.Answer{}, nil
}

func (s *seen) Count(_ context.Context, _ string, count ingest.Count, _ int) (ingest.Counted, error) {
	s.project = count.Search.Project
	return ingest.Counted{}, nil
}

// A search is limited to the projects that its caller may read.
func TestSearchStaysInside(t *testing.T) {
	directory := identity.NewDirectory()
	for project, organization := range map[string]string{"prj_1": "org", "prj_2": "org", "prj_3": "other"} {
		fact, err := json.Marshal(contract.ProjectCreated{Organization: organization, Project: project})
		if err != nil || directory.Apply(contract.TypeProjectCreated, fact) != nil {
			t.Fatal(err)
		}
	}
	bound := identity.Principal{Organization: "org", Project: "prj_1", Access: contract.AccessProject}
	for _, c := range []struct {
		who         identity.Principal
		asked, want string
		err         error
	}{
		{identity.Principal{Organization: "org"}, "", "", nil},
		{identity.Principal{Organization: "org"}, "prj_2", "prj_2", nil},
		{identity.Principal{Organization: "org"}, "prj_3", "", searches.ErrNoProject},
		{identity.Principal{Organization: "org"}, "prj_4", "", searches.ErrNoProject},
		{bound, "", "prj_1", nil},
		{bound, "prj_2", "", searches.ErrNoProject},
	} {
		finder := &seen{}
		s := &searches.Service{Directory: directory, Searches: finder}
		_, err := s.Search(t.Context(), c.who, ingest.Search{Project: c.asked})
		if !errors.Is(err, c.err) || finder.project != c.want {
			t.Errorf("%+v asks for %q: %v, searched in %q", c.who, c.asked, err, finder.project)
		}
		finder.project = ""
		_, err = s.Count(t.Context(), c.who, ingest.Count{Search: ingest.Search{Project: c.asked}}, 1)
		if !errors.Is(err, c.err) || finder.project != c.want {
			t.Errorf("%+v counts %q: %v, in %q", c.who, c.asked, err, finder.project)
		}
	}
}
