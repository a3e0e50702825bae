package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// Decisions change what becomes of groups.
type Decisions struct {
	db       *store
	announce Announce
}

// A DecisionRequest is a command before it is known which releases there are.
type DecisionRequest struct {
	grouping.Command
	InNewest bool             // resolved in the newest release of the group's package
	Versions map[string]int64 // of groups, which refuse others; those that it lacks refuse none. Bounded by the groups of a request
}

// Newest and next name releases that are looked up.
const (
	newestRelease = "current"
	nextRelease   = "next"
)

// ResolveIn has a request resolve in a release: "current" is the newest
// known one, and "next" the one after it.
func (w *DecisionRequest) ResolveIn(release string) {
	switch release {
	case newestRelease:
		w.InNewest = true
	case nextRelease:
		w.Resolution.Next = true
	default:
		w.Resolution.Release = release
	}
}

// asksReleases reports whether the request names a release that is looked up.
func (w DecisionRequest) asksReleases() bool { return w.InNewest || w.Resolution.Next }

// command completes a request about a group.
func (w DecisionRequest) command(of postgres.Group, known grouping.SeenReleases) (grouping.Command, error) {
	newest := known.Newest(of.LastRelease)
	switch {
	case !w.asksReleases():
		return w.Command, nil
	case newest == "":
		return w.Command, grouping.Invalid{Field: "in_release", Detail: "No release of the project is known.",
			Fix: `Send entries with "release" in their metadata, name a release, or leave in_release out.`}
	case w.InNewest:
		w.Resolution.Release = newest
	default:
		w.Resolution.After = known.InEach(of.LastRelease)
	}
	return w.Command, nil
}

// named is the request with the members whom it names, found once for all
// groups, before any of these is locked.
func (d *Decisions) named(who identity.Principal, wanted DecisionRequest) DecisionRequest {
	if wanted.Assign != nil && wanted.Assign.ID == grouping.Me && who.Member != "" {
		wanted.Assign = &grouping.Assignee{ID: who.Member}
	}
	wanted.Command = wanted.Named(d.db.members(who.Organization))
	return wanted
}

// checkAssignee refuses the id of a member whom nobody knows: it would look like a label.
func (d *Decisions) checkAssignee(organization string, to *grouping.Assignee) error {
	if to == nil || !strings.HasPrefix(to.ID, "mem_") {
		return nil
	}
	return d.db.checkMembers(organization, "assignee", to.ID)
}

// checkLinks refuses webhooks that nobody knows. A link that the group has
// already may name one that was deleted since.
func (d *Decisions) checkLinks(organization string, of grouping.State, links *[]grouping.Link) error {
	if links == nil {
		return nil
	}
	for i, link := range *links {
		if link.Webhook == "" || slices.Contains(of.Links, link) {
			continue
		}
		if err := d.db.checkWebhooks(organization, fmt.Sprintf("external_links/%d/webhook", i), link.Webhook); err != nil {
			return err
		}
	}
	return nil
}

// Decide carries out a request about a group.
func (d *Decisions) Decide(ctx context.Context, request Request, id string, wanted DecisionRequest) (postgres.Group, error) {
	named := d.named(request.Who, wanted)
	return once(ctx, d.db, request, []any{id, wanted}, func(tx pgx.Tx) (project string, _ postgres.Group, err error) {
		decided, err := d.decide(ctx, tx, request, []string{id}, named)
		if err == nil && len(decided) == 0 {
			err = noGroup(id)
		}
		if err != nil {
			return "", postgres.Group{}, err
		}
		return decided[0].Group.Project, decided[0].Group, nil
	})
}

// decide carries out a request about those of the groups that there are
// and the principal may read.
func (d *Decisions) decide(ctx context.Context, tx pgx.Tx, request Request, ids []string, named DecisionRequest) ([]*postgres.DecidedGroup, error) {
	if err := d.checkAssignee(request.Who.Organization, named.Assign); err != nil {
		return nil, err
	}
	locked, err := postgres.LockHeads(ctx, tx, pg.Organization(request.Who.Organization), ids)
	if err != nil {
		return nil, err
	}
	known := map[string]grouping.SeenReleases{} // by project; bounded by the groups
	now, decided := d.db.now(), locked[:0]
	for _, m := range locked {
		if !d.db.mayRead(request.Who, m.Group.Project) {
			continue
		}
		sights, read := known[m.Group.Project]
		if !read && named.asksReleases() {
			if sights, err = postgres.FindReleases(ctx, tx, postgres.Project{Organization: m.Organization, Name: m.Group.Project}); err != nil {
				return nil, err
			}
			known[m.Group.Project] = sights
		}
		command, err := named.command(m.Group, sights)
		if err != nil {
			return nil, err
		}
		if err := d.checkLinks(m.Organization, m.Group.State, command.Links); err != nil {
			return nil, err
		}
		if version, is := named.Versions[m.Group.ID]; is {
			command.IfVersion = &version
		}
		m.Decisions, err = m.Group.State.Decide(command, m.Group.Version, now)
		var conflict grouping.Conflict
		if errors.As(err, &conflict) {
			conflict.Group = m.Group.ID
			return nil, conflict
		}
		if err != nil {
			return nil, fmt.Errorf("cannot decide about group %q: %w", m.Group.ID, err)
		}
		decided = append(decided, m)
	}
	return decided, d.announce.record(ctx, tx, decided, request.By)
}

// MaxBulk is how many groups one request decides about at most.
const MaxBulk = 1000

// Bulk is what a decision about a whole search has done.
type Bulk struct {
	Changed    int
	Left       int64 // groups that it would still change
	Incomplete bool  // the search took too long: there may be more
}

// DecideAll carries out a request about the groups of a search that it would
// change, up to MaxBulk of them, those last seen first.
func (d *Decisions) DecideAll(ctx context.Context, request Request, query postgres.GroupQuery, wanted DecisionRequest) (Bulk, error) {
	query.Unlike = postgres.Unlike{Status: wanted.Status}
	named := d.named(request.Who, wanted)
	if named.Assign != nil {
		query.Unlike.Assignee = &named.Assign.ID
	}
	if query.Unlike == (postgres.Unlike{}) {
		return Bulk{}, grouping.Invalid{Detail: "The request decides nothing about a search.", Fix: "Send a status or an assignee. A note alone is for one group."}
	}
	return once(ctx, d.db, request, []any{query, wanted}, func(tx pgx.Tx) (string, Bulk, error) {
		query.Assignee = d.db.assignee(request.Who.Organization, query.Assignee)
		query.Hidden, query.TimeUp = d.db.hidden(request.Who.Organization), d.db.timeUp(maxSearchTime)
		found, err := postgres.FindIDs(ctx, tx, pg.Organization(request.Who.Organization), query, MaxBulk)
		if err != nil {
			return "", Bulk{}, err
		}
		decided, err := d.decide(ctx, tx, request, found.IDs, named)
		return query.Project, Bulk{Changed: len(decided), Left: found.More, Incomplete: found.Incomplete}, err
	})
}

// DecideEach carries out a request about those of some groups that there are.
func (d *Decisions) DecideEach(ctx context.Context, request Request, ids []string, wanted DecisionRequest) (Bulk, error) {
	named := d.named(request.Who, wanted)
	return once(ctx, d.db, request, []any{ids, wanted}, func(tx pgx.Tx) (string, Bulk, error) {
		decided, err := d.decide(ctx, tx, request, ids, named)
		if err == nil && len(decided) == 0 {
			err = noGroup(ids[0])
		}
		return "", Bulk{Changed: len(decided)}, err
	})
}

// ReopenDue opens the groups again that were ignored until now.
func (d *Decisions) ReopenDue(ctx context.Context) error {
	return repeat(ctx, d.db.pool, func(tx pgx.Tx) (more bool, err error) {
		changed, err := postgres.EndDue(ctx, tx, d.db.clock())
		if err != nil {
			return false, err
		}
		return len(changed) > 0, d.announce(ctx, tx, changed)
	})
}

// Archive archives the groups that have been quiet for as long as their
// projects have set.
func (d *Decisions) Archive(ctx context.Context) error {
	var all []postgres.Archiving
	err := pg.InTxAsSystem(ctx, d.db.pool, func(tx pgx.Tx) (err error) {
		all, err = postgres.FindArchiving(ctx, tx)
		return err
	})
	for _, of := range all {
		if err != nil {
			return err
		}
		err = d.archive(ctx, of)
	}
	return err
}

func (d *Decisions) archive(ctx context.Context, of postgres.Archiving) error {
	var last postgres.GroupCursor
	return repeat(ctx, d.db.pool, func(tx pgx.Tx) (more bool, err error) {
		var changed []postgres.Change
		if changed, last, err = postgres.ArchiveQuiet(ctx, tx, of, last, d.db.now()); err != nil {
			return false, err
		}
		return last != postgres.GroupCursor{}, d.announce(ctx, tx, changed)
	})
}

// RebuildDecisions makes the columns of all groups that follow from
// decisions again from these.
func RebuildDecisions(ctx context.Context, pool *pgxpool.Pool) error {
	var last eventstore.Stream
	return repeat(ctx, pool, func(tx pgx.Tx) (more bool, err error) {
		last, err = postgres.Rebuild(ctx, tx, last)
		return last != eventstore.Stream{}, err
	})
}
