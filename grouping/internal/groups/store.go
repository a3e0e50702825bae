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
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/replica"
)

// A store runs transactions. Those of organizations take turns;
// a Problem 429 means that the organization's share is used up.
type store struct {
	pool     *pgxpool.Pool
	reads    *pgxpool.Pool
	replica  *replica.Reader
	projects *identity.Directory
	limiter  *httpapi.Limiter
	clock    func() time.Time
	report   Report
}

// now is the time as it is stored.
func (s *store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// timeUp returns a function that reports whether span has passed.
func (s *store) timeUp(span time.Duration) func() bool {
	ends := s.clock().Add(span)
	return func() bool { return !s.clock().Before(ends) }
}

// mayRead reports whether the principal may read a project's
// groups. Nobody may once its deletion is requested.
func (s *store) mayRead(who identity.Principal, project string) bool {
	return who.ReadsProject(project) && !s.projects.Hides(who.Organization, project)
}

// hidden are the projects of an organization whose groups nobody may read.
func (s *store) hidden(organization string) []string {
	return slices.Collect(maps.Keys(s.projects.Hidden(organization)))
}

// members are those of an organization who may read errors.
func (s *store) members(organization string) (members []grouping.Member) {
	for _, m := range s.projects.MembersThatRead(organization, identity.ReadErrors) {
		members = append(members, grouping.Member{ID: m.ID, Name: m.Name})
	}
	return members
}

// maxShownID is how much of an id that is refused is shown, in bytes.
const maxShownID = 64

// checkMembers refuses ids in a field that are of no member who may read errors.
func (s *store) checkMembers(organization, field string, ids ...string) error {
	if id, found := s.projects.NoReader(organization, identity.ReadErrors, ids...); found {
		return grouping.Invalid{Field: field, Detail: fmt.Sprintf("%q is no member who reads errors.", trace.Clip(id, maxShownID)),
			Fix: "Use ids of members of the organization, which begin with mem_; one who was just added is known in a moment."}
	}
	return nil
}

// checkWebhooks refuses ids in a field that are of none of an organization's webhooks.
func (s *store) checkWebhooks(organization, field string, ids ...string) error {
	for _, id := range ids {
		if _, known := s.projects.Webhook(organization, id); !known {
			return grouping.Invalid{Field: field, Detail: fmt.Sprintf("%q is none of the organization's webhooks.", trace.Clip(id, maxShownID)),
				Fix: "Their ids, which begin with whk_, are on the page Webhooks of the settings and at GET /v1/organizations/{organization}/webhooks; " +
					"one that was just made is known in a moment."}
		}
	}
	return nil
}

// assignee is the id of whom a search names: of a member, by name or id, or a label.
func (s *store) assignee(organization, named string) string {
	return grouping.AssigneeNamed(named, s.members(organization)).ID
}

// read runs fn in a snapshot of the organization's rows.
func read[T any](ctx context.Context, s *store, organization string, fn func(tx pgx.Tx, organization pg.Organization) (T, error)) (found T, err error) {
	release, err := s.limiter.Acquire(ctx, organization)
	if err != nil {
		return found, err
	}
	defer release()
	err = s.replica.Snapshot(ctx, s.reads, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return err
		}
		found, err = fn(tx, pg.Organization(organization))
		return err
	})
	return found, err
}

// group finds a group that the principal may read.
func (s *store) group(ctx context.Context, tx pgx.Tx, who identity.Principal, id string) (postgres.Group, postgres.Explanation, error) {
	group, why, err := postgres.FindGroup(ctx, tx, pg.Organization(who.Organization), id)
	if errors.Is(err, postgres.ErrNoGroup) || err == nil && !s.mayRead(who, group.Project) {
		err = noGroup(id)
	}
	return group, why, err
}

func noGroup(id string) error { return httpapi.NotFound("error group", id) }

// readGroup runs fn in a snapshot for a group that the principal may read.
func readGroup[T any](ctx context.Context, s *store, who identity.Principal, id string, fn func(tx pgx.Tx, group postgres.Group) (T, error)) (T, error) {
	return read(ctx, s, who.Organization, func(tx pgx.Tx, _ pg.Organization) (found T, err error) {
		group, _, err := s.group(ctx, tx, who, id)
		if err != nil {
			return found, err
		}
		return fn(tx, group)
	})
}

// write runs fn in a transaction of the organization.
func (s *store) write(ctx context.Context, organization string, fn func(tx pgx.Tx) error) error {
	release, err := s.limiter.Acquire(ctx, organization)
	if err != nil {
		return err
	}
	defer release()
	return s.inTx(ctx, organization, fn)
}

func (s *store) inTx(ctx context.Context, organization string, fn func(tx pgx.Tx) error) error {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return err
		}
		return fn(tx)
	})
}

// answer is what a request was answered; erasure finds it by project.
type answer[T any] struct {
	Project string `json:"project"`
	Body    T      `json:"body"`
}

// maxRetries is how often a request starts over because others decide about the same groups.
const maxRetries = 10

// once runs fn in a transaction of the organization, unless the same request
// was answered before. fn returns its project, if it has one, and the answer.
func once[T any](ctx context.Context, s *store, request Request, input any, fn func(tx pgx.Tx) (project string, body T, err error)) (T, error) {
	var made answer[T]
	release, err := s.limiter.Acquire(ctx, request.Who.Organization)
	if err != nil {
		return made.Body, err
	}
	defer release()
	text, err := json.Marshal(input)
	if err != nil {
		return made.Body, fmt.Errorf("cannot encode a request: %w", err)
	}
	key := request.Key
	if key != "" {
		key = request.Who.ID + " " + key // of one program, which knows nothing of others' keys
	}
	same := idempotency.NewRequest("answers", request.Who.Organization, key, text)
	run := func() error {
		return s.inTx(ctx, request.Who.Organization, func(tx pgx.Tx) (err error) {
			if known, err := same.Load(ctx, tx, &made); known || err != nil {
				return err
			}
			if made.Project, made.Body, err = fn(tx); err != nil {
				return err
			}
			return same.Save(ctx, tx, made, s.clock())
		})
	}
	err = run()
	for range maxRetries {
		if !pg.IsUnique(err) && !errors.Is(err, postgres.ErrMerging) { // not answered meanwhile
			break
		}
		err = run()
	}
	return made.Body, err
}

// repeat runs fn in transactions of the system for as long as there is more to do.
func repeat(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) (more bool, err error)) error {
	for more := true; more; {
		err := pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) (err error) {
			more, err = fn(tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
