package groups

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// An Entry is a log entry as the log store has it.
type Entry struct {
	ID          string
	Project     string
	Environment string // its own, or that of its key
	ReceivedAt  time.Time
	Text        []byte
}

// ReadEntry reads the error of an entry; found is false where it carries none.
type ReadEntry func(organization string, of Entry, learned grouping.Learned, paths grouping.Paths) (o grouping.Occurrence, found bool, err error)

// Occurrences finds the errors of groups among log entries.
type Occurrences struct {
	db   *store
	book *postgres.RuleBook
	read ReadEntry

	selections *httpapi.Limiter
}

// selectionsAtOnce bounds the memory of selections: each takes 4 MiB for entries, and as much for what is read of them.
var selectionsAtOnce = httpapi.LimiterConfig{Slots: 16, Module: "weir_grouping", Noun: "selections"}

// Acquire waits until the entries of a selection may be read, as few are at once.
func (o *Occurrences) Acquire(ctx context.Context, organization string) (release func(), err error) {
	return o.selections.Acquire(ctx, organization)
}

// An EntrySearch finds all log entries of a group, and others.
type EntrySearch struct {
	Project, Query string
	From, To       time.Time // To is exclusive; zero: no API can write it
}

// maxYear is the last one of RFC 3339.
const maxYear = 9999

// Search is what finds the log entries of a group.
func (o *Occurrences) Search(ctx context.Context, who identity.Principal, group string) (EntrySearch, error) {
	return readGroup(ctx, o.db, who, group, func(tx pgx.Tx, g postgres.Group) (EntrySearch, error) { return searchOf(ctx, tx, who.Organization, g) })
}

func searchOf(ctx context.Context, tx pgx.Tx, organization string, g postgres.Group) (EntrySearch, error) {
	search, from, err := postgres.FindEntrySearch(ctx, tx, organization, g.ID)
	found := EntrySearch{Project: g.Project, Query: search.Query(), From: from, To: search.Last.Add(time.Microsecond)}
	if found.To.UTC().Year() > maxYear {
		found.To = time.Time{}
	}
	return found, err
}

// Select finds those of some entries that are errors of a group, in their order. It tells them apart by what
// held when they were accepted: rules, splits, source maps, and what was learned.
func (o *Occurrences) Select(ctx context.Context, who identity.Principal, group string, entries []Entry) ([]grouping.Occurrence, error) {
	return readGroup(ctx, o.db, who, group, func(tx pgx.Tx, g postgres.Group) (selected []grouping.Occurrence, err error) {
		of := postgres.Project{Organization: who.Organization, Name: g.Project}
		regrouper, err := o.book.NewRegrouper(ctx, tx, of)
		if err != nil {
			return nil, err
		}
		errs, err := o.readErrors(ctx, tx, of, regrouper, entries)
		if err != nil {
			return nil, err
		}
		if _, err := mapErrors(ctx, tx, errs); err != nil {
			return nil, err
		}
		found, err := regrouper.Find(ctx, tx, errs)
		for i, id := range found {
			if id == g.ID {
				selected = append(selected, errs[i])
			}
		}
		return selected, err
	})
}

// readErrors reads the errors of a project's entries as the consumer did.
func (o *Occurrences) readErrors(ctx context.Context, tx pgx.Tx, of postgres.Project, r *postgres.Regrouper, entries []Entry) (
	errs []grouping.Occurrence, err error,
) {
	settings, err := postgres.FindSettings(ctx, tx, []postgres.Project{of})
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.Project != of.Name {
			continue
		}
		learned, err := r.Learned(ctx, tx, entry.ReceivedAt)
		if err != nil {
			return nil, err
		}
		read, found, err := o.read(of.Organization, entry, learned, settings.Of(of, entry.ReceivedAt))
		if err != nil {
			return nil, fmt.Errorf("cannot read entry %q: %w", entry.ID, err)
		}
		if found {
			errs = append(errs, read)
		}
	}
	return errs, nil
}
