package tenants

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ErasureTimeout is how long modules may take to erase.
const ErasureTimeout = 15 * time.Minute

// MaxDeletionGrace is the longest time in which a deletion can be cancelled.
const MaxDeletionGrace = 90 * 24 * time.Hour

// ErrBegun means that a deletion can no longer be cancelled.
var ErrBegun = errors.New("the deletion has begun")

// A DeletionState is the progress of a deletion.
type DeletionState string

// The states. They are part of responses.
const (
	DeletionCancelledState DeletionState = "cancelled"
	Deleting               DeletionState = "deleting" // hidden and refused; can be cancelled
	Erasing                DeletionState = "erasing"  // can't be cancelled
	Gone                   DeletionState = "gone"
)

// A Deletable is a project, or without Project an organization.
type Deletable struct {
	Organization string `json:"organization"`
	Project      string `json:"project,omitempty"`
}

// ID is the id of what is deleted, and so of its deletion.
func (d Deletable) ID() string { return cmp.Or(d.Project, d.Organization) }

// Kind is its kind.
func (d Deletable) Kind() string {
	if d.Project != "" {
		return "project"
	}
	return "organization"
}

// DeletionRequested hides and refuses what is to be deleted.
type DeletionRequested struct {
	Deletable
	At       time.Time `json:"at"`
	BeginsAt time.Time `json:"begins_at"`
}

func (e DeletionRequested) meta() eventMeta {
	return eventMeta{"tenants.v1.deletion_requested", PublishedCredential, e.Kind() + ".deletion_requested", e.At, &Deletion{}, kept}
}

// DeletionCancelled restores what was to be deleted.
type DeletionCancelled struct {
	Deletable
	At time.Time `json:"at"`
}

func (e DeletionCancelled) meta() eventMeta {
	return eventMeta{"tenants.v1.deletion_cancelled", PublishedCredential, e.Kind() + ".deletion_cancelled", e.At, &Deletion{}, kept}
}

// DeletionBegun starts the erasure in every module.
type DeletionBegun struct {
	Deletable
	At     time.Time `json:"at"`
	GoneBy time.Time `json:"gone_by"`
}

func (e DeletionBegun) meta() eventMeta {
	return eventMeta{"tenants.v1.deletion_begun", PublishedFact, e.Kind() + ".deletion_begun", e.At, &Deletion{}, kept}
}

// DeletionFinished means that every module has erased its data.
type DeletionFinished struct {
	Deletable
	At      time.Time                   `json:"at"`
	Removed map[string]map[string]int64 `json:"removed"` // rows, by module and table

	// Lines of the audit reduced to ids and actions, and
	// a hash of them: their own hashes no longer match.
	ReducedLines int64  `json:"reduced_lines"`
	ReducedHash  string `json:"reduced_hash"`
}

func (e DeletionFinished) meta() eventMeta {
	return eventMeta{"tenants.v1.deletion_finished", PublishedCredential, e.Kind() + ".deletion_finished", e.At, &Deletion{}, kept}
}

// A Deletion is the end of an organization or a project.
// It holds only ids, so it can stay when all else is gone.
type Deletion struct {
	Deletable
	RequestedAt  time.Time
	BeginsAt     time.Time
	CancelledAt  time.Time // zero: not cancelled
	BegunAt      time.Time // zero: not begun
	GoneBy       time.Time
	FinishedAt   time.Time // zero: not finished
	Removed      map[string]map[string]int64
	ReducedLines int64
	ReducedHash  string
}

// State is the deletion's progress; empty if none was requested.
func (d Deletion) State() DeletionState {
	switch {
	case d.RequestedAt.IsZero():
		return ""
	case !d.CancelledAt.IsZero():
		return DeletionCancelledState
	case d.BegunAt.IsZero():
		return Deleting
	case d.FinishedAt.IsZero():
		return Erasing
	}
	return Gone
}

// Request decides to delete an existing entity after a time in which
// that can be cancelled. It is idempotent: the first time stays.
func (d Deletion) Request(of Deletable, at time.Time, grace time.Duration) ([]Event, error) {
	if state := d.State(); state != "" && state != DeletionCancelledState {
		return nil, nil
	}
	return []Event{DeletionRequested{Deletable: of, At: at, BeginsAt: at.Add(grace)}}, nil
}

// Cancel decides to restore what was to be deleted. It is idempotent.
func (d Deletion) Cancel(at time.Time) ([]Event, error) {
	switch d.State() {
	case "":
		return nil, ErrNotFound
	case DeletionCancelledState:
		return nil, nil
	case Deleting:
		return []Event{DeletionCancelled{Deletable: d.Deletable, At: at}}, nil
	}
	return nil, ErrBegun
}

// Begin decides to begin the erasure, if the time has come.
func (d Deletion) Begin(at time.Time) ([]Event, error) {
	if d.State() != Deleting || at.Before(d.BeginsAt) {
		return nil, nil
	}
	return []Event{DeletionBegun{Deletable: d.Deletable, At: at, GoneBy: at.Add(ErasureTimeout)}}, nil
}

// Finish decides that all modules have erased their data.
func (d Deletion) Finish(finished DeletionFinished) ([]Event, error) {
	if d.State() != Erasing {
		return nil, nil
	}
	finished.Deletable = d.Deletable
	return []Event{finished}, nil
}

// Apply applies an event.
func (d *Deletion) Apply(event Event) {
	switch e := event.(type) {
	case DeletionRequested:
		*d = Deletion{Deletable: e.Deletable, RequestedAt: e.At, BeginsAt: e.BeginsAt, GoneBy: e.BeginsAt.Add(ErasureTimeout)}
	case DeletionCancelled:
		d.CancelledAt = e.At
	case DeletionBegun:
		d.BegunAt, d.GoneBy = e.At, e.GoneBy
	case DeletionFinished:
		d.FinishedAt, d.Removed, d.ReducedLines, d.ReducedHash = e.At, e.Removed, e.ReducedLines, e.ReducedHash
	default:
		panic(fmt.Sprintf("BUG: a deletion does not know %T", event))
	}
}

func (d *Deletion) audited() (Target, Fields) {
	return Target{d.Kind(), d.ID(), ""}, Fields{
		"state": string(d.State()), "begins_at": d.BeginsAt, "gone_by": d.GoneBy, "removed": d.removed(),
		"reduced_lines": int(d.ReducedLines), "reduced_hash": d.ReducedHash,
	}
}

// removed is a text about each table's removed rows.
func (d *Deletion) removed() (texts []string) {
	for _, module := range slices.Sorted(maps.Keys(d.Removed)) {
		var tables []string
		for _, table := range slices.Sorted(maps.Keys(d.Removed[module])) {
			tables = append(tables, fmt.Sprintf("%s %d", table, d.Removed[module][table]))
		}
		texts = append(texts, module+": "+strings.Join(tables, ", "))
	}
	return texts
}
