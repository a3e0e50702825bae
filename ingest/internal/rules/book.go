package rules

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
)

// ErrUnreadable means that the rules of a project can't be read. None of its
// entries may pass: they could hold what the rules redact.
var ErrUnreadable = errors.New("the rules of the project can't be read")

// ErrSlow means that the rules take too long for so many entries.
var ErrSlow = errors.New("the rules of the project take too long for the request")

// longest is how long rules may take for the entries of a request.
const longest = 5 * time.Second

// A Book has the rules of all projects, ready to be applied. A nil *Book has
// none. It is safe for concurrent use.
type Book struct {
	clock   func() time.Time
	entries [len(kinds)]prometheus.Counter

	some   atomic.Bool // projects have rules: the others cost a look at it
	mu     sync.RWMutex
	held   map[string]heldRules // bounded by the projects that have had rules
	rulers sync.Pool
}

var kinds = [...]ingest.RuleKind{ingest.RuleDrop, ingest.RuleSample, ingest.RuleRedact, ingest.RuleSetLevel}

// heldRules are the rules of a project at a version.
type heldRules struct {
	version int64
	set     *ingest.Ruleset // nil: there are none
	err     error
}

// NewBook returns an empty book.
func NewBook(registerer prometheus.Registerer, clock func() time.Time) *Book {
	b := &Book{clock: clock, held: map[string]heldRules{}}
	metrics := promauto.With(registerer)
	entries := metrics.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_ingest_ruled_entries_total", Help: "Entries that rules of their project have left out or changed, by what the rule does.",
	}, []string{"kind"})
	for i, kind := range kinds {
		b.entries[i] = entries.WithLabelValues(kind.String())
	}
	count := func(name, help string, counts func(heldRules) bool) {
		metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return b.count(counts) })
	}
	count("weir_ingest_ruled_projects", "Projects that have rules.", func(h heldRules) bool { return h.set != nil })
	count("weir_ingest_unreadable_rules", "Projects whose rules can't be read: their entries are refused.", func(h heldRules) bool { return h.err != nil })
	return b
}

func (b *Book) count(counts func(heldRules) bool) (n float64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, h := range b.held {
		if counts(h) {
			n++
		}
	}
	return n
}

// Set takes the rules of a project, unless it has those of a newer version.
// Where they can't be read, it says why, and the project's entries are refused
// until other rules come.
func (b *Book) Set(project string, version int64, text string) error {
	return b.put(project, readRules(version, text), false)
}

// Replace is Set whatever version the book has.
func (b *Book) Replace(project string, version int64, text string) error {
	return b.put(project, readRules(version, text), true)
}

// Damage notes that the rules of a project can't be read, not even their
// version, and returns the error of its entries.
func (b *Book) Damage(project string, why error) error {
	return b.put(project, unreadable(0, why), true)
}

func readRules(version int64, text string) heldRules {
	set, err := ingest.ParseRules(text)
	if err != nil {
		return unreadable(version, err)
	}
	if len(set.Rules()) == 0 {
		set = nil
	}
	return heldRules{version: version, set: set}
}

func unreadable(version int64, why error) heldRules {
	return heldRules{version: version, err: fmt.Errorf("%w: version %d: %w", ErrUnreadable, version, why)}
}

// put returns the error of what it was given.
func (b *Book) put(project string, h heldRules, always bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if always || h.version >= b.held[project].version {
		b.held[project] = h
		b.some.Store(true)
	}
	return h.err
}

// Forget removes a project.
func (b *Book) Forget(project string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, project)
	b.some.Store(len(b.held) > 0)
}

func (b *Book) of(project string) (*ingest.Ruleset, error) {
	if b == nil || !b.some.Load() {
		return nil, nil //nolint:nilnil // no project has rules
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	h := b.held[project]
	return h.set, h.err
}

// Redacts reports whether a project has rules that redact, or that can't be read.
func (b *Book) Redacts(project string) bool {
	set, err := b.of(project)
	return err != nil || set != nil && slices.ContainsFunc(set.Rules(), func(rule ingest.IngestRule) bool { return rule.Kind == ingest.RuleRedact })
}

// Apply applies the rules of a project to a batch of a key's environment, and
// returns how long that took. The error is ErrUnreadable or ErrSlow.
func (b *Book) Apply(project, environment string, batch *ingest.Batch) (ruling ingest.Ruling, took time.Duration, err error) {
	set, err := b.of(project)
	if set == nil || err != nil {
		return ruling, 0, err
	}
	begun := b.clock()
	ruler, idle := b.rulers.Get().(*ingest.Ruler)
	if !idle {
		ruler = new(ingest.Ruler)
	}
	defer b.rulers.Put(ruler)
	ruling, done := ruler.Apply(set, batch, environment, func() bool { return b.clock().Sub(begun) > longest })
	if took = b.clock().Sub(begun); !done {
		return ruling, took, ErrSlow
	}
	for i, kind := range kinds {
		b.entries[i].Add(float64(ruling.Entries[kind]))
	}
	return ruling, took, nil
}
