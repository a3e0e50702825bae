package searches_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// A desk is a store whose searches end on the test's signal. It records
// for whom they began.
type desk struct {
	begun chan string
	end   chan struct{} // of any organization
	endOf map[string]chan struct{}
	found []ingest.Found
	asked ingest.Search
	mu    sync.Mutex
}

func newDesk() *desk { return &desk{begun: make(chan string, 1000), end: make(chan struct{})} }

func (d *desk) Search(ctx context.Context, organization pg.Organization, search ingest.Search) (ingest.Result, error) {
	d.mu.Lock()
	d.asked = search
	d.mu.Unlock()
	d.begun <- string(organization)
	select {
	case <-d.end:
		return ingest.Result{Found: d.found}, nil
	case <-d.endOf[string(organization)]:
		return ingest.Result{}, nil
	case <-ctx.Done():
		return ingest.Result{}, ctx.Err()
	}
}

func newSearches(d *desk, answerBytes int64) *searches.Searches {
	return searches.New(searches.Config{Store: d, Concurrency: 4, AnswerBytes: answerBytes, Metrics: prometheus.NewRegistry()})
}

// An organization's searches have half of the places; another's begins
// at once, and excess is refused with a time to retry.
func TestOneOrganizationLeavesRoom(t *testing.T) {
	d := newDesk()
	s := newSearches(d, 64<<20)
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	refused := make(chan error, 100)
	for range 60 {
		work.Go(func() {
			answer, err := s.Page(ctx, "noisy", ingest.Search{Limit: 1})
			if err == nil {
				answer.Close()
			} else if ctx.Err() == nil {
				refused <- err
			}
		})
	}
	for range 2 {
		<-d.begun
	}
	var problem *httpapi.Problem
	for range 60 - 2 - 32 {
		if err := <-refused; !errors.As(err, &problem) || problem.Status != http.StatusTooManyRequests || problem.Code != "overloaded" || problem.Header.Get("Retry-After") == "" {
			t.Fatalf("refused with %v", err)
		}
	}
	work.Go(func() { _, _ = s.Page(ctx, "quiet", ingest.Search{Limit: 1}) })
	if got := <-d.begun; got != "quiet" {
		t.Errorf("the next search is that of %q", got)
	}
	cancel()
	work.Wait()
}

// While all places are taken, organizations take turns, whatever their queues.
func TestOrganizationsTakeTurns(t *testing.T) {
	d := newDesk()
	d.endOf = map[string]chan struct{}{"a": make(chan struct{})}
	s := newSearches(d, 1<<30)
	var work sync.WaitGroup
	defer work.Wait()
	defer close(d.end)
	page := func(organization string) {
		work.Go(func() { _, _ = s.Page(t.Context(), organization, ingest.Search{Limit: 1}) })
	}
	for _, organization := range []string{"a", "a", "b", "b"} {
		page(organization)
		<-d.begun
	}
	waiting := func(n int) {
		testenv.Eventually(t, 30*time.Second, func() error {
			if s.Waiting() != n {
				return errors.New("not all wait yet")
			}
			return nil
		})
	}
	for range 20 {
		page("a")
	}
	waiting(20)
	page("quiet")
	waiting(21)
	var order []string
	for range 3 {
		d.endOf["a"] <- struct{}{} // where b's ended, a could have its share already, and nobody would begin
		order = append(order, <-d.begun)
	}
	if at := slices.Index(order, "quiet"); at < 0 {
		t.Errorf("after 3 searches it is still not the turn of the quiet one: %q", order)
	}
}

// Unread answers hold memory of their own organization, and never all of it.
func TestAnswersHaveABudget(t *testing.T) {
	d := newDesk()
	close(d.end)
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
	d := newDesk()
	close(d.end)
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
