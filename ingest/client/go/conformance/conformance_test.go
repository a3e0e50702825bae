package conformance

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	weir "github.com/weirlog/weir/ingest/client/go"
)

var entries = flag.Int("entries", 10_000, "how many to send through each fault; 100,000 is the long form")

const key = "weir_0123456789abcdef0123456789abcdef0123456789abcdef"

// A scenario is what goes wrong, and what an SDK may drop by it.
type scenario struct {
	fault  func(n int, keep func(), w http.ResponseWriter) bool
	limits weir.Limits
	drops  []weir.Reason
}

// scenarios are those that need settings of this SDK: client/conformance of
// the server has what all clients go through.
func scenarios() map[string]scenario {
	return map[string]scenario{
		"answers come late": {fault: late, limits: weir.Limits{Request: time.Second}},
		"more than can be held": {fault: func(int, func(), http.ResponseWriter) bool { time.Sleep(20 * time.Millisecond); return false },
			limits: weir.Limits{QueueEntries: 1000}, drops: []weir.Reason{weir.QueueFull}},
	}
}

// late stores a batch long before it answers, at first.
func late(n int, keep func(), _ http.ResponseWriter) bool {
	if n > 2 {
		return false
	}
	keep()
	time.Sleep(2 * time.Second)
	return false
}

func TestEachEntryIsStoredOnceOrToldAsDropped(t *testing.T) {
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := NewServer()
			server.Fault = s.fault
			dropped := send(t, server, s)
			requests := server.Requests()
			time.Sleep(100 * time.Millisecond)
			if server.Requests() != requests {
				t.Error("something was sent after Close")
			}
			server.Close()
			judge(t, server, dropped, s.drops != nil)
		})
	}
}

func judge(t *testing.T, server *Server, dropped int, mayDrop bool) {
	stored, doubled := 0, 0
	for _, n := range server.Entries {
		stored++
		doubled += n - 1
	}
	t.Logf("%d requests; %d of %d stored, %d dropped, %d told by an entry", server.Requests(), stored, *entries, dropped, server.Notices)
	if doubled > 0 || server.Reused > 0 {
		t.Errorf("%d entries are there twice, %d keys came with other bodies", doubled, server.Reused)
	}
	if stored+dropped < *entries {
		t.Errorf("%d entries are lost, and nobody says so", *entries-stored-dropped)
	}
	if !mayDrop && dropped > 0 || mayDrop && stored+dropped != *entries {
		t.Errorf("%d entries dropped of %d that are not stored", dropped, *entries-stored)
	}
}

// send sends entries through a fault, and returns how many the SDK says that
// it dropped.
func send(t *testing.T, server *Server, s scenario) (dropped int) {
	file, err := server.CAFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.limits.BatchEntries = max(*entries/10, 10)
	var errs []error
	var told int
	c, err := weir.New(weir.Options{
		BaseURL: server.URL + "/v1", APIKey: key, CAFile: file, Limits: s.limits,
		OnError: func(err error) { errs = append(errs, err) }, OnDrop: func(d weir.Drop) { told += d.Entries },
	})
	if err != nil {
		t.Fatal(err)
	}
	calls(t, slog.New(weir.NewHandler(c, weir.HandlerOptions{})))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_ = c.Close(ctx)
	stats := c.Stats()
	for reason, n := range stats.Dropped {
		dropped += int(n)
		if !slices.Contains(s.drops, reason) {
			t.Errorf("%d dropped as %s: %v", n, reason, errs)
		}
	}
	if told != dropped || int(stats.Accepted)+dropped != *entries || stats.Waiting != 0 {
		t.Errorf("OnDrop was told %d, stats are %+v", told, stats)
	}
	return dropped
}

// calls logs all entries, and reports how long a call takes. It waits now and
// then: else all would be there before the first request.
func calls(t *testing.T, log *slog.Logger) {
	took := make([]time.Duration, *entries)
	for i := range took {
		begun := time.Now()
		log.Info(fmt.Sprintf("entry %d", i), "n", i, "of", *entries)
		if took[i] = time.Since(begun); i%(*entries/20) == 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	slices.Sort(took)
	over, _ := slices.BinarySearch(took, time.Millisecond)
	t.Logf("a call takes %v (p50), %v (p99), %v at most; %.3f %% over 1 ms", took[len(took)/2], took[len(took)*99/100], took[len(took)-1],
		100*float64(len(took)-over)/float64(len(took)))
}

func TestMemoryIsBounded(t *testing.T) {
	release := make(chan struct{})
	server := NewServer()
	server.Fault = func(int, func(), http.ResponseWriter) bool { <-release; return false }
	file, err := server.CAFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	const queue = 8 << 20
	c, err := weir.New(weir.Options{BaseURL: server.URL + "/v1", APIKey: key, CAFile: file, Limits: weir.Limits{QueueBytes: queue}})
	if err != nil {
		t.Fatal(err)
	}
	log, text := slog.New(weir.NewHandler(c, weir.HandlerOptions{})), strings.Repeat("x", 1000)
	for i := range *entries * 10 {
		log.Info(text, "n", i)
	}
	grown := heap() - before
	t.Logf("%d entries of 1 KB, of which none leaves: %.1f MiB in memory with a queue of 8 MiB", *entries*10, float64(grown)/(1<<20))
	if grown > 2*queue {
		t.Errorf("%d bytes in memory", grown)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.Close(ctx); err == nil {
		t.Error("Close says that all was sent")
	}
	close(release)
	server.Close()
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
