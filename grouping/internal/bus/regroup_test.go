package bus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/ruletext"
)

// history is what was accepted, a record every second.
type history struct {
	*world
	entries []groups.Entry
}

// comes consumes lines, each in a record and a transaction of its own, twice.
func (h *history) comes(lines ...string) {
	h.t.Helper()
	for _, line := range append(lines, lines...) {
		h.now = h.now.Add(time.Second)
		l := logs(line)
		l.Time = h.now
		h.offset++
		h.consume(record(l, h.offset))
		h.entries = append(h.entries, groups.Entry{ID: contract.EntryID(l.Batch, 0), Project: l.Project, Environment: l.Environment, ReceivedAt: l.Time, Text: []byte(line)})
	}
}

// exact checks that each group selects as many of all entries as it has counted, and no two the same one.
func (h *history) exact() (groups int) {
	h.t.Helper()
	by := map[string]string{} // groups by entry
	found := groupsOf(h.t, h.pool, "acme")
	for _, g := range found {
		selected, err := h.Occurrences.Select(h.t.Context(), member, g.ID, h.entries)
		if err != nil {
			h.t.Fatal(err)
		}
		if int64(len(selected)) != g.Count {
			h.t.Errorf("%q selects %d of its %d errors", g.Title, len(selected), g.Count)
		}
		for _, o := range selected {
			if by[o.Entry] != "" {
				h.t.Errorf("%s is of %q and %q", o.Entry, by[o.Entry], g.Title)
			}
			by[o.Entry] = g.Title
		}
	}
	return len(found)
}

func newHistory(t *testing.T) *history { return &history{world: newWorld(t)} }

// failed is an entry with an error of a trace.
func failed(message string, calls ...string) string {
	return fmt.Sprintf(`{"level":"error","message":"m","metadata":{"service":"pay"},"error":{"type":"E","message":%q,"stack_trace":["%s"]}}`, message, strings.Join(calls, `","`))
}

// Entries from before and after words became values are of the groups that have counted them.
func TestRegroupAfterValues(t *testing.T) {
	h := newHistory(t)
	named := func(from, to int) (lines []string) {
		for i := from; i < to; i++ {
			lines = append(lines, failed("no user named "+groupingtest.Letters(27+i)+"x here now", "at com.acme.Users.find(Users.java:1)"))
		}
		return lines
	}
	h.comes(named(0, 6)...)
	h.comes(named(6, 14)...)
	h.comes(named(3, 30)...)
	if n := h.exact(); n < 6 || n > 16 {
		t.Errorf("there are %d groups: nothing was learned?", n)
	}
}

// The same after rules were set, and after a library was learned.
func TestRegroupAfterRulesAndLibraries(t *testing.T) {
	h := newHistory(t)
	vendored := func() (lines []string) {
		for _, kind := range "abcd" {
			lines = append(lines, failed("", "at org.vendor.Client.send"+string(kind)+"(C.java:1)", "at com.acme.Cart.total"+string(kind)+"(A.java:1)"),
				failed("", "at org.vendor.Client.ask"+string(kind)+"(C.java:1)", "at com.acme.Cart.same(A.java:1)"))
		}
		return lines
	}
	h.comes(vendored()...)
	for i := range 64 {
		h.comes(failed("", "at com.acme.Cart.sum"+groupingtest.Letters(27+i)+"(A.java:1)"))
	}
	h.comes(vendored()...)
	h.exact()
	if _, err := h.Rules.Set(t.Context(), h.request(), ruletext.Wish{Project: "shop", Text: `same "All" function:com.acme.Cart.sum* service:pay`}); err != nil {
		t.Fatal(err)
	}
	h.now = h.now.Add(time.Minute)
	before := h.exact()
	h.comes(append(vendored(), failed("", "at com.acme.Cart.sumba(A.java:1)"), failed("", "at com.acme.Cart.sumnew(A.java:1)"))...)
	if n := h.exact(); n != before+1 {
		t.Errorf("%d groups became %d", before, n)
	}
}

// The overflow has what came beyond the budget, also of kinds that have a group since.
func TestRegroupOverflow(t *testing.T) {
	h := newHistory(t)
	h.Service = groups.New(groups.Config{NewGroups: grouping.Budgets{Project: 2, Organization: 100}, Projects: h.members, Pool: h.pool, Reads: h.pool, Concurrency: 16,
		Announce: bus.Announce, Report: bus.Report, Read: bus.ReadEntry, Clock: func() time.Time { return h.now }, Metrics: prometheus.NewRegistry()})
	kinds := []string{groupingtest.Failure(1), groupingtest.Failure(2), groupingtest.Failure(3), groupingtest.Failure(4)}
	for i := range kinds {
		kinds[i] = strings.Replace(kinds[i], `"timestamp":"2026-11-20T12:00:00.123Z",`, "", 1)
	}
	h.comes(kinds...)
	h.now = h.now.Add(time.Hour)
	h.comes(kinds[:3]...)
	if n := h.exact(); n != 4 {
		t.Errorf("%d groups, want 3 and the overflow", n)
	}
}

// Errors of a script stay where they were counted, before and after its map has come.
func TestRegroupAfterMaps(t *testing.T) {
	h := newHistory(t)
	line := printed(t, "esbuild", release1)
	h.comes(line)
	h.upload(groups.Upload{Release: "1.0", Name: "static/esbuild.min.js", Text: fixture(t, "esbuild")})
	h.now = h.now.Add(time.Minute)
	h.comes(line)
	if n := h.exact(); n != 2 {
		t.Errorf("%d groups, want one from before the map came and one from after that", n)
	}
}
