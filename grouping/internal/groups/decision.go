package groups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// A Request is one that decides about groups.
type Request struct {
	Who identity.Principal
	By  postgres.Author
	Key string // Idempotency-Key; empty: none
}

// A Wish is a command before it is known which releases there are.
type Wish struct {
	grouping.Command
	InNewest bool // resolved in the newest release of the group's package
}

// Newest and next name releases that are looked up.
const (
	newestRelease = "current"
	nextRelease   = "next"
)

// ResolveIn has a wish resolve in a release: "current" is the newest
// known one, and "next" the one after it.
func (w *Wish) ResolveIn(release string) {
	switch release {
	case newestRelease:
		w.InNewest = true
	case nextRelease:
		w.Resolution.Next = true
	default:
		w.Resolution.Release = release
	}
}

// command completes a wish about a group.
func (w Wish) command(of postgres.Group, known grouping.Sights) (grouping.Command, error) {
	newest := known.Newest(of.LastRelease)
	switch {
	case !w.InNewest && !w.Resolution.Next:
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

// Decide carries out a wish about a group. If there is none that the
// principal may read, the error is postgres.ErrNoGroup.
func (s *Service) Decide(ctx context.Context, request Request, id string, wish Wish) (postgres.Group, error) {
	answer, err := once(ctx, s, request, []any{id, wish}, func(tx pgx.Tx) (answer[postgres.Group], error) {
		made, err := s.decide(ctx, tx, request, []string{id}, wish)
		if err != nil {
			return answer[postgres.Group]{}, err
		}
		if len(made) == 0 {
			return answer[postgres.Group]{}, postgres.ErrNoGroup
		}
		return answer[postgres.Group]{made[0].Group.Project, made[0].Group}, nil
	})
	return answer.Body, err
}

// decide carries out a wish about those of the groups that there are
// and the principal may read.
func (s *Service) decide(ctx context.Context, tx pgx.Tx, request Request, ids []string, wish Wish) ([]*postgres.Made, error) {
	made, err := postgres.LockHeads(ctx, tx, pg.Organization(request.Who.Organization), ids)
	if err != nil {
		return nil, err
	}
	known := map[string]grouping.Sights{} // by project; bounded by the groups
	now := s.Clock().UTC().Truncate(time.Microsecond)
	kept := made[:0]
	for _, m := range made {
		if !s.mayRead(request.Who, m.Group.Project) {
			continue
		}
		sights, read := known[m.Group.Project]
		if !read && (wish.InNewest || wish.Resolution.Next) {
			if sights, err = postgres.FindReleases(ctx, tx, postgres.Project{Organization: m.Organization, Name: m.Group.Project}); err != nil {
				return nil, err
			}
			known[m.Group.Project] = sights
		}
		command, err := wish.command(m.Group, sights)
		if err != nil {
			return nil, err
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
		kept = append(kept, m)
	}
	changed, err := postgres.Record(ctx, tx, kept, request.By)
	if err != nil {
		return nil, err
	}
	return kept, s.Announce(ctx, tx, changed)
}

// MaxBulk is how many groups one request decides about at most.
const MaxBulk = 1000

// Bulk is what a decision about a whole search has done.
type Bulk struct {
	Changed    int
	Left       int64 // groups that it would still change
	Incomplete bool  // the search took too long: there may be more
}

// DecideAll carries out a wish about the groups of a search that it would
// change, up to MaxBulk of them, those last seen first.
func (s *Service) DecideAll(ctx context.Context, request Request, query postgres.GroupQuery, wish Wish) (Bulk, error) {
	query.Unlike = postgres.Unlike{Status: wish.Status}
	if wish.Assign != nil {
		query.Unlike.Assignee = &wish.Assign.ID
	}
	if query.Unlike == (postgres.Unlike{}) {
		return Bulk{}, grouping.Invalid{Detail: "The request decides nothing about a search.", Fix: "Send a status or an assignee. A note alone is for one group."}
	}
	answer, err := once(ctx, s, request, []any{query, wish}, func(tx pgx.Tx) (answer[Bulk], error) {
		bulk, err := s.decideAll(ctx, tx, request, query, wish)
		return answer[Bulk]{query.Project, bulk}, err
	})
	return answer.Body, err
}

func (s *Service) decideAll(ctx context.Context, tx pgx.Tx, request Request, query postgres.GroupQuery, wish Wish) (Bulk, error) {
	query.Hidden, query.TimeUp = slices.Collect(maps.Keys(s.Projects.Hidden(request.Who.Organization))), s.timeUp(maxSearchTime)
	found, err := postgres.FindIDs(ctx, tx, pg.Organization(request.Who.Organization), query, MaxBulk)
	if err != nil {
		return Bulk{}, err
	}
	made, err := s.decide(ctx, tx, request, found.IDs, wish)
	return Bulk{Changed: len(made), Left: found.More, Incomplete: found.Incomplete}, err
}

// DecideEach carries out a wish about those of some groups that there are.
// If the principal may read none, the error is postgres.ErrNoGroup.
func (s *Service) DecideEach(ctx context.Context, request Request, ids []string, wish Wish) (Bulk, error) {
	answer, err := once(ctx, s, request, []any{ids, wish}, func(tx pgx.Tx) (answer[Bulk], error) {
		made, err := s.decide(ctx, tx, request, ids, wish)
		if err == nil && len(made) == 0 {
			err = postgres.ErrNoGroup
		}
		return answer[Bulk]{Body: Bulk{Changed: len(made)}}, err
	})
	return answer.Body, err
}

// answer is what a request was answered; erasure finds it by project.
type answer[T any] struct {
	Project string `json:"project"`
	Body    T      `json:"body"`
}

// maxRetries is how often a request starts over because others decide about the same groups.
const maxRetries = 10

// once runs fn in a transaction of the organization, unless the same
// request was answered before.
func once[T any](ctx context.Context, s *Service, request Request, input any, fn func(tx pgx.Tx) (answer[T], error)) (made answer[T], err error) {
	release, err := s.limiter.Acquire(ctx, request.Who.Organization)
	if err != nil {
		return made, err
	}
	defer release()
	text, err := json.Marshal(input)
	if err != nil {
		return made, fmt.Errorf("cannot encode a request: %w", err)
	}
	key := request.Key
	if key != "" {
		key = request.Who.ID + " " + key // of one program, which knows nothing of others' keys
	}
	same := idempotency.NewRequest("answers", request.Who.Organization, key, text)
	run := func() error {
		return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
			if err := pg.AsOrganization(ctx, tx, pg.Organization(request.Who.Organization)); err != nil {
				return err
			}
			if known, err := same.Load(ctx, tx, &made); known || err != nil {
				return err
			}
			if made, err = fn(tx); err != nil {
				return err
			}
			return same.Save(ctx, tx, made, s.Clock())
		})
	}
	err = run()
	for range maxRetries {
		if !pg.IsUnique(err) && !errors.Is(err, postgres.ErrMerging) { // not answered meanwhile
			break
		}
		err = run()
	}
	return made, err
}

// Activity finds decisions about a group, the newest first: at most limit of
// those before a number. If there is none that the principal may read, the
// error is postgres.ErrNoGroup.
func (s *Service) Activity(ctx context.Context, who identity.Principal, id string, before int64, limit int) (found []postgres.Activity, err error) {
	err = s.read(ctx, who.Organization, func(tx pgx.Tx, organization pg.Organization) error {
		group, _, err := postgres.FindGroup(ctx, tx, organization, id)
		if err == nil && !s.mayRead(who, group.Project) {
			err = postgres.ErrNoGroup
		}
		if err != nil {
			return err
		}
		found, err = postgres.FindActivity(ctx, tx, organization, id, before, limit)
		return err
	})
	return found, err
}

// Decided finds the newest decisions about a group that the principal has
// read, and the known releases of its project.
func (s *Service) Decided(ctx context.Context, who identity.Principal, of postgres.Group, limit int) (
	found []postgres.Activity, known grouping.Sights, err error,
) {
	err = s.read(ctx, who.Organization, func(tx pgx.Tx, organization pg.Organization) error {
		if found, err = postgres.FindActivity(ctx, tx, organization, of.ID, of.Version+1, limit); err != nil {
			return err
		}
		known, err = postgres.FindReleases(ctx, tx, postgres.Project{Organization: string(organization), Name: of.Project})
		return err
	})
	return found, known, err
}

// EndDue opens the groups again that were ignored until now.
func (s *Service) EndDue(ctx context.Context) error {
	for {
		ended := 0
		err := pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) error {
			changed, err := postgres.EndDue(ctx, tx, s.Clock())
			if err != nil {
				return err
			}
			ended = len(changed)
			return s.Announce(ctx, tx, changed)
		})
		if err != nil || ended == 0 {
			return err
		}
	}
}

// RebuildDecisions makes the columns of all groups that follow from
// decisions again from these.
func RebuildDecisions(ctx context.Context, pool *pgxpool.Pool) error {
	for last := (eventstore.Stream{}); ; {
		err := pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) (err error) {
			last, err = postgres.Rebuild(ctx, tx, last)
			return err
		})
		if err != nil || last == (eventstore.Stream{}) {
			return err
		}
	}
}
