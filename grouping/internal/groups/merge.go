package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/pg"
)

// A MergeRequest asks to merge groups into one, or to take them out of it.
type MergeRequest struct {
	Into      string // id of a group or of a member of it; empty: the group that was seen first
	Groups    []string
	IfVersion *int64 // of the group that they are merged into or taken out of
}

// Merges merge groups and take them apart.
type Merges struct {
	db       *store
	announce Announce
}

// Merge merges groups into one, with all that was merged into them.
func (m *Merges) Merge(ctx context.Context, request Request, wanted MergeRequest) (postgres.Group, error) {
	return m.change(ctx, request, "merge", wanted, joined, grouping.Family.Merge)
}

// Unmerge takes groups out of the one that they were merged into.
func (m *Merges) Unmerge(ctx context.Context, request Request, wanted MergeRequest) (postgres.Group, error) {
	decide := func(of grouping.Family, _ []grouping.Family, ifVersion *int64, now time.Time) (grouping.GroupDecisions, error) {
		return of.Unmerge(wanted.Groups, ifVersion, now)
	}
	return m.change(ctx, request, "unmerge", wanted, parted, decide)
}

// A target finds the family that a request is about, and checks what it names.
type target func(families []*postgres.Family, wanted MergeRequest) (*postgres.Family, error)

type mergeRule func(of grouping.Family, families []grouping.Family, ifVersion *int64, now time.Time) (grouping.GroupDecisions, error)

func (m *Merges) change(ctx context.Context, request Request, does string, wanted MergeRequest, find target, decide mergeRule) (postgres.Group, error) {
	if n := len(wanted.Groups); n == 0 || n > grouping.MaxMerged {
		return postgres.Group{}, grouping.Invalid{Field: "groups", Detail: fmt.Sprintf("The request names %d groups.", n),
			Fix: fmt.Sprintf("Name 1 to %d.", grouping.MaxMerged)}
	}
	return once(ctx, m.db, request, []any{does, wanted}, func(tx pgx.Tx) (string, postgres.Group, error) {
		group, err := m.changeIn(ctx, tx, request, wanted, find, decide)
		return group.Project, group, err
	})
}

func (m *Merges) changeIn(ctx context.Context, tx pgx.Tx, request Request, wanted MergeRequest, find target, decide mergeRule) (of postgres.Group, err error) {
	organization := pg.Organization(request.Who.Organization)
	families, err := postgres.LockFamilies(ctx, tx, organization, append([]string{wanted.Into}, wanted.Groups...))
	if err != nil {
		return of, err
	}
	families = slices.DeleteFunc(families, func(f *postgres.Family) bool { return !m.db.mayRead(request.Who, f.Head.Group.Project) })
	into, err := find(families, wanted)
	if err != nil {
		return of, err
	}
	all := make([]grouping.Family, len(families))
	for i, f := range families {
		all[i] = f.Versions()
	}
	decided, err := decide(into.Versions(), all, wanted.IfVersion, m.db.now())
	if err != nil {
		return of, err
	}
	if err := m.announce.recordMerges(ctx, tx, request.Who.Organization, postgres.DecidedGroups(families, decided), request.By); err != nil {
		return of, err
	}
	of, _, err = postgres.FindGroup(ctx, tx, organization, into.Head.Group.ID)
	return of, err
}

// Split makes errors with a hash of samples of a group a group of their own from now on.
func (m *Merges) Split(ctx context.Context, request Request, id, hash string, ifVersion *int64) (postgres.Group, error) {
	return once(ctx, m.db, request, []any{"split", id, hash, ifVersion}, func(tx pgx.Tx) (string, postgres.Group, error) {
		group, err := m.split(ctx, tx, request, id, hash, ifVersion)
		return group.Project, group, err
	})
}

func (m *Merges) split(ctx context.Context, tx pgx.Tx, request Request, id, hash string, ifVersion *int64) (group postgres.Group, err error) {
	organization := pg.Organization(request.Who.Organization)
	families, err := postgres.LockFamilies(ctx, tx, organization, []string{id})
	if err != nil {
		return group, err
	}
	if len(families) == 0 || !m.db.mayRead(request.Who, families[0].Head.Group.Project) {
		return group, noGroup(id)
	}
	family := families[0]
	like, _ := grouping.ParseHash(hash)
	of, samples, err := postgres.FindSplitHashes(ctx, tx, organization, family, like)
	if errors.Is(err, postgres.ErrNoSample) {
		return group, grouping.Invalid{Field: "hash", Detail: fmt.Sprintf("The group has no sample with the hash %q.", trace.Clip(hash, maxShownID)),
			Fix: "Use the hash of one of its occurrences."}
	}
	if err != nil {
		return group, err
	}
	decided, err := family.Versions().Split(of.Group.ID, of.Group.Project, like, samples, ifVersion, m.db.now())
	if err != nil {
		return group, err
	}
	if saved, err := postgres.SaveSplit(ctx, tx, of, decided[of.Group.ID]); err != nil || !saved {
		return family.Head.Group, err
	}
	err = m.announce.record(ctx, tx, postgres.DecidedGroups(families, decided), request.By)
	return family.Head.Group, err
}

// recordMerges keeps decisions by which groups belong together, and carries them out.
func (a Announce) recordMerges(ctx context.Context, tx pgx.Tx, organization string, made []*postgres.DecidedGroup, by postgres.Author) error {
	changed, err := postgres.Record(ctx, tx, made, by)
	if err != nil {
		return err
	}
	ids := make([]string, len(made))
	for i, m := range made {
		ids[i] = m.Group.ID
	}
	if err := postgres.ApplyMerges(ctx, tx, organization, ids); err != nil {
		return err
	}
	return a(ctx, tx, changed)
}

// joined is the family that groups are merged into.
func joined(families []*postgres.Family, wanted MergeRequest) (into *postgres.Family, err error) {
	if wanted.Into != "" {
		into = familyOf(families, wanted.Into)
	} else if len(families) > 0 {
		into = slices.MinFunc(families, func(a, b *postgres.Family) int { return a.Head.Group.FirstSeen.Compare(b.Head.Group.FirstSeen) })
	}
	for _, id := range wanted.Groups {
		f := familyOf(families, id)
		switch {
		case f == nil:
			return nil, noGroup(id)
		case into == nil:
			return nil, grouping.Invalid{Field: "into", Detail: fmt.Sprintf("There is no error group %q.", trace.Clip(wanted.Into, maxShownID)),
				Fix: "Name a group of the project."}
		case f.Head.Group.Project != into.Head.Group.Project:
			return nil, grouping.Invalid{Field: "into", Detail: fmt.Sprintf("%q and %q are of different projects.", id, into.Head.Group.ID),
				Fix: "Merge groups of one project."}
		case f != into && f.Head.Group.ID != id:
			return nil, grouping.Invalid{Detail: fmt.Sprintf("The group %q was merged into %s.", id, f.Head.Group.ID),
				Fix: "Merge that group instead, or take this one out of it first."}
		}
	}
	return into, nil
}

// parted is the family that groups are taken out of.
func parted(families []*postgres.Family, wanted MergeRequest) (*postgres.Family, error) {
	from := familyOf(families, wanted.Into)
	if from == nil {
		return nil, noGroup(wanted.Into)
	}
	for i, id := range wanted.Groups {
		if familyOf(families, id) == nil {
			return nil, grouping.Invalid{Field: fmt.Sprintf("groups/%d", i), Detail: fmt.Sprintf("There is no error group %q.", trace.Clip(id, maxShownID)),
				Fix: "Name groups of the project."}
		}
	}
	return from, nil
}

// familyOf is the family of a head or a member; nil: none.
func familyOf(families []*postgres.Family, id string) *postgres.Family {
	for _, f := range families {
		if f.Head.Group.ID == id || slices.ContainsFunc(f.Members, func(m *postgres.DecidedGroup) bool { return m.Group.ID == id }) {
			return f
		}
	}
	return nil
}
