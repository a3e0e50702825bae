package tails_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/tails"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// A bench has a hub whose log is read at once, and a clock that stands.
type bench struct {
	*tails.Hub
	t         *testing.T
	directory *identity.Directory
	now       atomic.Int64  // nanoseconds
	takes     time.Duration // to read an entry
	reading   atomic.Int64
	parsed    int // records
}

func newBench(t *testing.T, viewers int) *bench {
	t.Helper()
	b := &bench{t: t, directory: identity.NewDirectory()}
	b.Hub = tails.New(tails.Config{
		Directory: b.directory, Viewers: viewers, Work: time.Second, Metrics: prometheus.NewRegistry(),
		Clock: func() time.Time { return time.Unix(0, b.now.Load()) },
	})
	read := func(ctx context.Context, begun func()) error {
		b.reading.Add(1)
		defer b.reading.Add(-1)
		begun()
		<-ctx.Done()
		return ctx.Err()
	}
	stop := testenv.Run(t, func(ctx context.Context) error {
		return b.Run(ctx, read, func(_ context.Context, err error) { t.Errorf("reading failed: %v", err) })
	})
	t.Cleanup(stop)
	return b
}

func (b *bench) watch(organization string, search ingest.Search) *tails.Viewer {
	b.t.Helper()
	v, err := b.Watch(b.t.Context(), organization, search, 0)
	testenv.Must(b.t, err)
	return v
}

// offer offers a record of entries with these messages.
func (b *bench) offer(organization, project string, messages ...string) {
	b.t.Helper()
	err := b.Offer(tails.Record{Organization: organization, Project: project, Entries: len(messages)}, func(each func(ingest.Stored)) error {
		b.parsed++
		for _, message := range messages {
			b.now.Add(int64(b.takes))
			each(ingest.Stored{Level: ingest.SeverityInfo, Environment: "prod", Text: []byte(`{"message":"` + message + `"}`)})
		}
		return nil
	})
	testenv.Must(b.t, err)
}

// taken are the texts that a viewer has got.
func taken(v *tails.Viewer) (texts []string) {
	_ = v.Take(func(found *ingest.Found) error {
		texts = append(texts, string(found.Text))
		return nil
	})
	return texts
}

// shows checks the messages that a viewer has got.
func shows(t *testing.T, v *tails.Viewer, want ...string) {
	t.Helper()
	got := []string{}
	for _, text := range taken(v) {
		got = append(got, strings.TrimSuffix(strings.TrimPrefix(text, `{"message":"`), `"}`))
	}
	if fmt.Sprint(got) != fmt.Sprint(append([]string{}, want...)) {
		t.Errorf("shows %q, want %q", got, want)
	}
}

func query(t *testing.T, text string) ingest.Query {
	t.Helper()
	q, err := ingest.ParseQuery(text)
	testenv.Must(t, err)
	return q
}

// A viewer gets what its search finds, and nothing of others. A record that
// nobody watches is not read, and one that many watch is read once.
func TestViewersGetWhatTheySearch(t *testing.T) {
	b := newBench(t, 80)
	all, again := b.watch("org_1", ingest.Search{}), b.watch("org_1", ingest.Search{})
	own, words := b.watch("org_1", ingest.Search{Project: "prj_1"}), b.watch("org_1", ingest.Search{Query: query(t, "time* -level:error")})
	level := b.watch("org_1", ingest.Search{Levels: ingest.SeveritySet(0).With(ingest.SeverityError)})
	other := b.watch("org_2", ingest.Search{})
	b.offer("org_1", "prj_1", "timeout", "fine")
	b.offer("org_1", "prj_2", "timed out")
	b.offer("org_3", "prj_3", "unseen")
	if b.parsed != 2 {
		t.Errorf("%d records were read, want 2", b.parsed)
	}
	shows(t, all, "timeout", "fine", "timed out")
	shows(t, again, "timeout", "fine", "timed out")
	shows(t, own, "timeout", "fine")
	shows(t, words, "timeout", "timed out")
	shows(t, level)
	shows(t, other)
	again.Close()
	b.offer("org_1", "prj_1", "later")
	shows(t, all, "later")
	shows(t, again)
}

// What is deleted, or is to be, is not shown.
func TestDeletedProjectsAreNotShown(t *testing.T) {
	b := newBench(t, 8)
	v := b.watch("org_1", ingest.Search{})
	hide := func(project string) {
		fact, err := json.Marshal(contract.DeletionRequested{Organization: "org_1", Project: project})
		testenv.Must(t, errors.Join(err, b.directory.Apply(contract.TypeDeletionRequested, fact)))
	}
	hide("prj_1")
	b.offer("org_1", "prj_1", "hidden")
	b.offer("org_1", "prj_2", "shown")
	shows(t, v, "shown")
	hide("")
	b.offer("org_1", "prj_2", "hidden")
	shows(t, v)
}

func isOverloaded(err error) bool {
	var problem *httpapi.Problem
	return errors.As(err, &problem) && problem.Status == 429 && problem.Code == "overloaded" && problem.Header.Get("Retry-After") != ""
}

// An organization has an eighth of the viewers. When there is no room, the
// first of another one takes the place of one of many.
func TestViewersAreBounded(t *testing.T) {
	b := newBench(t, 16)
	var viewers []*tails.Viewer
	for i := range 8 {
		organization := fmt.Sprint("org_", i)
		viewers = append(viewers, b.watch(organization, ingest.Search{}), b.watch(organization, ingest.Search{}))
		if _, err := b.Watch(t.Context(), organization, ingest.Search{}, 0); !isOverloaded(err) {
			t.Fatalf("the third of an organization: %v", err)
		}
	}
	for _, v := range viewers {
		go func() {
			select {
			case <-v.Evicted():
				v.Close()
			case <-t.Context().Done():
			}
		}()
	}
	for i := range 8 {
		b.watch(fmt.Sprint("new_", i), ingest.Search{})
	}
	if _, err := b.Watch(t.Context(), "too many", ingest.Search{}, 0); !isOverloaded(err) {
		t.Errorf("when each has one: %v", err)
	}
}

// A viewer that does not read loses what is beyond its buffer, and learns
// how much; others lose nothing.
func TestSlowViewersSkip(t *testing.T) {
	b := newBench(t, 16)
	slow, fast := b.watch("org_1", ingest.Search{}), b.watch("org_1", ingest.Search{})
	got := 0
	for range 100 {
		b.offer("org_1", "prj_1", strings.Repeat("x", 10<<10))
		got += len(taken(fast))
	}
	kept, skipped := len(taken(slow)), slow.Skipped()
	if got != 100 || fast.Skipped() != nil {
		t.Errorf("the fast viewer got %d", got)
	}
	if kept < 40 || len(skipped) != 1 || skipped[0] != (tails.Skipped{Reason: "slow", Entries: 100 - kept}) || slow.Skipped() != nil {
		t.Errorf("the slow viewer got %d, and skipped %v", kept, skipped)
	}
	b.offer("org_1", "prj_1", strings.Repeat("x", 500<<10))
	if len(taken(slow)) != 1 {
		t.Error("an entry larger than the buffer is never shown")
	}
	few, err := b.Watch(t.Context(), "org_2", ingest.Search{}, 2)
	testenv.Must(t, err)
	b.offer("org_2", "prj_2", "a", "b", "c")
	shows(t, few, "a", "b")
}

// What takes more time than an organization's share is not compared for its
// viewers, and they learn how much; others have their own share.
func TestSharesOfWork(t *testing.T) {
	b := newBench(t, 16)
	loud, quiet := b.watch("loud", ingest.Search{Query: query(t, "never")}), b.watch("quiet", ingest.Search{})
	b.takes = 20 * time.Millisecond
	for range 100 {
		b.offer("loud", "prj_1", "a", "b")
	}
	if b.parsed > 26 { // 40 ms each, of half a second that comes back while they take
		t.Errorf("%d records were read", b.parsed)
	}
	if skipped := loud.Skipped(); len(skipped) != 1 || skipped[0] != (tails.Skipped{Reason: "share", Entries: 2 * (100 - b.parsed)}) {
		t.Errorf("skipped %v, of %d that were read", skipped, b.parsed)
	}
	b.takes = 0
	b.offer("quiet", "prj_2", "fine")
	shows(t, quiet, "fine")
	loud.Close()
	again := b.watch("loud", ingest.Search{})
	b.offer("loud", "prj_1", "to come again gives no new share")
	shows(t, again)
	b.now.Add(int64(time.Second))
	b.offer("loud", "prj_1", "a second later")
	shows(t, again, "a second later")
}

// A record whose entries take long is not compared to its end: the viewers of
// others wait for it.
func TestLongTurnsEnd(t *testing.T) {
	b := newBench(t, 16)
	v := b.watch("org_1", ingest.Search{})
	b.takes = 40 * time.Millisecond
	b.offer("org_1", "prj_1", "a", "b", "c", "d")
	shows(t, v, "a", "b")
	if skipped := v.Skipped(); len(skipped) != 1 || skipped[0] != (tails.Skipped{Reason: "share", Entries: 2}) {
		t.Errorf("skipped %v", skipped)
	}
}

// The log is read while somebody watches, and a little longer.
func TestReadOnlyWhileWatched(t *testing.T) {
	b := newBench(t, 8)
	reads := func(want int64) func() error {
		return func() error {
			if got := b.reading.Load(); got != want {
				return fmt.Errorf("%d read, want %d", got, want)
			}
			return nil
		}
	}
	for range 2 {
		testenv.Must(t, reads(0)())
		v := b.watch("org_1", ingest.Search{})
		testenv.Must(t, reads(1)())
		v.Close()
		b.now.Add(int64(time.Minute))
		testenv.Eventually(t, reads(0))
	}
}
