package tails

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Config is what a Hub works with.
type Config struct {
	Directory *identity.Directory
	Viewers   int           // at once, at least 1; one organization has at most an eighth of them, rounded up
	Work      time.Duration // a second, of comparing and showing entries; one organization has at most half of it
	Clock     func() time.Time
	Metrics   prometheus.Registerer
}

const (
	shareOfViewers = 8
	shareOfWork    = 2
	longestWait    = time.Second     // for room that another organization has to give
	longestStart   = 5 * time.Second // until the log is read
	retryOverload  = 5 * time.Second
	maxShares      = 1 << 12 // organizations whose share of work is remembered

	// longestTurn is how long the entries of one record are compared: others
	// wait meanwhile.
	longestTurn = 100 * time.Millisecond

	// workPerByte is what it costs to send a byte to a viewer.
	workPerByte = 10 * time.Nanosecond

	// linger is how long the log is read on for the next viewer.
	linger = 5 * time.Second
)

// A Hub has the viewers of a process. Safe for concurrent use.
type Hub struct {
	config  Config
	slots   *fairshare.Limiter
	shares  *fairshare.Table[string]
	refused *prometheus.CounterVec
	skipped *prometheus.CounterVec

	mu       sync.Mutex
	watched  map[string][]*group // by organization; bounded by the viewers
	viewers  int
	idle     time.Time     // when the last viewer left
	begun    chan struct{} // closed while the log is read
	awaiting chan struct{} // gets a value when there is a viewer
}

// A group is viewers of an organization who look for the same.
type group struct {
	search  ingest.Search
	viewers []*Viewer // replaced, never changed
}

// New returns a hub without viewers.
func New(config Config) *Hub {
	perKey := (config.Viewers + shareOfViewers - 1) / shareOfViewers
	h := &Hub{
		config: config, shares: fairshare.NewTable[string](maxShares), watched: map[string][]*group{},
		begun: make(chan struct{}), awaiting: make(chan struct{}, 1),
		slots: fairshare.NewLimiter(fairshare.Limits{
			Capacity: int64(config.Viewers), PerKey: int64(perKey), Leases: perKey, Wait: longestWait,
		}),
	}
	h.measure(promauto.With(config.Metrics))
	return h
}

// Why a viewer is refused, and an entry is skipped.
const (
	refusedShare = "share" // its organization has its share
	refusedRoom  = "room"  // there are too many in all

	skippedSlow  = "slow"
	skippedShare = "share"
)

func (h *Hub) measure(metrics promauto.Factory) {
	metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_ingest_tails_running", Help: "Viewers of entries as they come."},
		func() float64 { return float64(h.slots.Held()) })
	metrics.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_ingest_tails_evicted_total", Help: "Viewers that were ended for the first of another organization.",
	}, func() float64 { return float64(h.slots.Evictions()) })
	h.refused = metrics.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_ingest_tails_refused_total", Help: "Viewers that were refused because their organization had its share, or there were too many in all.",
	}, []string{"reason"})
	h.skipped = metrics.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_ingest_tails_skipped_entries_total",
		Help: "Entries that a viewer did not get: it read too slowly (slow), or they were not compared as its organization had its share (share).",
	}, []string{"reason"})
	for _, reason := range []string{refusedShare, refusedRoom} {
		h.refused.WithLabelValues(reason)
	}
	for _, reason := range []string{skippedSlow, skippedShare} {
		h.skipped.WithLabelValues(reason)
	}
}

// Watch returns a viewer of what an organization sends from now on, as far
// as the search matches. At most so many entries wait for it, by their bytes
// where that is 0. It has to be closed.
func (h *Hub) Watch(ctx context.Context, organization string, search ingest.Search, most int) (*Viewer, error) {
	lease, err := h.slots.Acquire(ctx, organization, 1)
	switch {
	case errors.Is(err, fairshare.ErrTooMany):
		return nil, h.refuse(refusedShare, "Your organization watches as many tails as it may. End one of them.")
	case errors.Is(err, fairshare.ErrFull):
		return nil, h.refuse(refusedRoom, "There are as many tails as this process can serve. Try again.")
	case err != nil:
		return nil, err
	}
	v := newViewer(h, organization, lease, most)
	begun := h.enter(v, search)
	lease.AllowEviction(func() { close(v.evicted) })
	if err := await(ctx, begun); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

func (h *Hub) refuse(reason, detail string) error {
	h.refused.WithLabelValues(reason).Inc()
	return httpapi.NewProblem(http.StatusTooManyRequests, "overloaded", detail).RetryAfter(retryOverload)
}

func await(ctx context.Context, begun <-chan struct{}) error {
	late := time.NewTimer(longestStart)
	defer late.Stop()
	select {
	case <-begun:
		return nil
	case <-late.C:
		return httpapi.Unavailable("The log can't be read for the moment. Try again.", time.Second)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter adds a viewer, and returns what is closed once the log is read.
func (h *Hub) enter(v *Viewer, search ingest.Search) (begun <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	groups := h.watched[v.organization]
	i := slices.IndexFunc(groups, func(g *group) bool { return alike(&g.search, &search) })
	if i < 0 {
		i = len(groups)
		h.watched[v.organization] = append(groups, &group{search: search})
	}
	v.group = h.watched[v.organization][i]
	v.group.viewers = append(slices.Clone(v.group.viewers), v)
	h.viewers++
	select {
	case h.awaiting <- struct{}{}:
	default:
	}
	return h.begun
}

// alike reports whether two searches find the same.
func alike(a, b *ingest.Search) bool {
	return a.Project == b.Project && a.Levels == b.Levels && a.Environment == b.Environment && a.Query.String() == b.Query.String()
}

func (h *Hub) leave(v *Viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v.group.viewers = slices.DeleteFunc(slices.Clone(v.group.viewers), func(other *Viewer) bool { return other == v })
	if len(v.group.viewers) == 0 {
		groups := slices.DeleteFunc(h.watched[v.organization], func(g *group) bool { return g == v.group })
		if h.watched[v.organization] = groups; len(groups) == 0 {
			delete(h.watched, v.organization)
		}
	}
	h.viewers--
	h.idle = h.config.Clock()
}

// Run has the log read while somebody watches: read reads it from its end
// on, calls begun once it knows where that is, and Offer for each record.
func (h *Hub) Run(ctx context.Context, read func(ctx context.Context, begun func()) error, failed func(context.Context, error)) error {
	for h.awaitViewer(ctx) {
		reading, stop := context.WithCancel(ctx)
		go h.stopWhenIdle(reading, stop)
		err := read(reading, h.begin)
		if reading.Err() == nil { // it could not begin
			failed(ctx, err)
			lifecycle.Pause(ctx, time.Second)
			h.awaitAgain()
		}
		stop()
	}
	return nil
}

// awaitViewer waits for a viewer, and reports whether there is one before ctx ends.
func (h *Hub) awaitViewer(ctx context.Context) bool {
	select {
	case <-ctx.Done():
	case <-h.awaiting:
	}
	return ctx.Err() == nil
}

func (h *Hub) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.begun)
}

// awaitAgain has those who wait go on waiting.
func (h *Hub) awaitAgain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notReading()
	if h.viewers > 0 && len(h.awaiting) == 0 {
		h.awaiting <- struct{}{}
	}
}

// notReading has the next viewer wait for the log. The caller holds the lock.
func (h *Hub) notReading() {
	select {
	case <-h.begun:
		h.begun = make(chan struct{})
	default:
	}
}

func (h *Hub) stopWhenIdle(ctx context.Context, stop func()) {
	idle := func(context.Context) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if ctx.Err() == nil && h.viewers == 0 && h.config.Clock().Sub(h.idle) >= linger {
			h.notReading()
			select {
			case <-h.awaiting: // of a viewer that has left
			default:
			}
			stop()
		}
		return nil
	}
	_ = lifecycle.Every(ctx, time.Second, idle, nil)
}

// A Record is what is known of a record without reading its entries.
type Record struct {
	Organization, Project string
	Entries               int
}

// Offer passes on the entries of a record, which read reads, if somebody
// watches them. The entries are copied. What an organization takes is time,
// as no size tells what a query costs.
func (h *Hub) Offer(record Record, read func(each func(ingest.Stored)) error) error {
	groups, rate := h.audience(&record)
	if len(groups) == 0 {
		return nil
	}
	began := h.config.Clock()
	if h.shares.Wait(began, record.Organization, rate) > 0 {
		for i := range groups {
			groups[i].skip(record.Entries)
		}
		return nil
	}
	t := turn{groups: groups, clock: h.config.Clock, ends: began.Add(longestTurn), project: record.Project}
	err := read(t.show)
	now := h.config.Clock()
	h.shares.Spend(now, record.Organization, int64(now.Sub(began)+time.Duration(t.sent)*workPerByte), rate)
	if err != nil {
		return fmt.Errorf("cannot show a record of %s: %w", record.Project, err)
	}
	return nil
}

// audience returns copies of the groups that may see a record, and the
// share of its organization.
func (h *Hub) audience(record *Record) (groups []group, rate fairshare.Rate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.watched[record.Organization] {
		if g.search.Project == "" || g.search.Project == record.Project {
			groups = append(groups, *g)
		}
	}
	if len(groups) == 0 || h.hides(record.Organization, record.Project) {
		return nil, rate
	}
	share := max(1, int64(h.config.Work)/int64(max(shareOfWork, len(h.watched))))
	return groups, fairshare.Rate{Burst: share, PerSecond: share}
}

func (h *Hub) hides(organization, project string) bool {
	return h.config.Directory.Hides(organization, "") || h.config.Directory.Hides(organization, project)
}

// A turn shows the entries of one record.
type turn struct {
	groups  []group
	clock   func() time.Time
	ends    time.Time
	project string
	sent    int // bytes
}

func (t *turn) show(entry ingest.Stored) {
	var found *ingest.Found
	for i := range t.groups {
		g := &t.groups[i]
		if t.clock().After(t.ends) {
			g.skip(1)
			continue
		}
		if !g.search.Matches(&entry) {
			continue
		}
		if found == nil {
			entry.Text = slices.Clone(entry.Text) // the record's memory is lent
			found = &ingest.Found{Stored: entry, Project: t.project}
		}
		for _, v := range g.viewers {
			v.push(found)
			t.sent += sizeOf(found)
		}
	}
}

// skip counts entries that are not compared for a group.
func (g *group) skip(entries int) {
	for _, v := range g.viewers {
		v.skip(skippedShare, entries)
	}
}
