package groups

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// Owners returns the versions of a project's rules about who looks after new groups, the newest first.
func (s *Service) Owners(ctx context.Context, who identity.Principal, project string) (versions []postgres.OwnerRules, err error) {
	if !s.mayRead(who, project) {
		return nil, ErrNoProject
	}
	err = s.read(ctx, who.Organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		versions, err = owners(ctx, tx, organization, project, false)
		return err
	})
	return versions, err
}

func owners(ctx context.Context, tx pgx.Tx, organization pg.Organization, project string, toApply bool) ([]postgres.OwnerRules, error) {
	of := postgres.Project{Organization: string(organization), Name: project}
	all, err := postgres.FindOwners(ctx, tx, []postgres.Project{of}, toApply)
	slices.Reverse(all[of])
	return all[of], err
}

// SetOwners replaces the rules of a project. They hold for groups whose first error
// is accepted from now on. ifSince refuses others than those from then; nil: none.
func (s *Service) SetOwners(ctx context.Context, request Request, project string, rules grouping.Owners, ifSince *time.Time) (postgres.OwnerRules, error) {
	if !s.mayRead(request.Who, project) {
		return postgres.OwnerRules{}, ErrNoProject
	}
	answer, err := once(ctx, s, request, []any{project, rules, ifSince, "owners"}, func(tx pgx.Tx) (made answer[postgres.OwnerRules], err error) {
		if err := rules.Check(); err != nil {
			return made, err
		}
		organization := pg.Organization(request.Who.Organization)
		if err := postgres.LockSettings(ctx, tx, organization, project); err != nil {
			return made, err
		}
		versions, err := owners(ctx, tx, organization, project, false)
		if err != nil {
			return made, err
		}
		var last postgres.OwnerRules
		if len(versions) > 0 {
			last = versions[0]
		}
		switch {
		case ifSince != nil && !ifSince.Equal(last.Since):
			return made, ErrSettingsChanged
		case slices.Equal(last.Rules, rules):
			return answerOf(project, last), nil
		}
		set := postgres.OwnerRules{Since: s.since(last.Since), Rules: rules, By: request.By.ID}
		return answerOf(project, set), postgres.SaveOwners(ctx, tx, organization, project, set)
	})
	return answer.Body, err
}

// Applied is what the rules of a project did to its groups.
type Applied struct {
	Assigned, Looked int
	Next             *postgres.GroupCursor // where to go on; nil: all were looked at
}

const (
	// maxApplied is how many groups one request looks at.
	maxApplied = 1000
	// applyBatch is how many one transaction looks at: its turn to append makes others wait.
	applyBatch = 50
)

// ApplyOwners gives unresolved groups that nobody looks after to whom the rules name: those of
// maxApplied groups behind a place in the list. Who does so twice does nothing more.
func (s *Service) ApplyOwners(ctx context.Context, request Request, project string, after postgres.GroupCursor) (done Applied, err error) {
	if !s.mayRead(request.Who, project) {
		return done, ErrNoProject
	}
	release, err := s.limiter.Acquire(ctx, request.Who.Organization)
	if err != nil {
		return done, err
	}
	defer release()
	done.Next = &after
	for done.Next != nil && done.Looked < maxApplied {
		err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error { return s.applyOwners(ctx, tx, request, project, &done) })
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (s *Service) applyOwners(ctx context.Context, tx pgx.Tx, request Request, project string, done *Applied) error {
	organization := pg.Organization(request.Who.Organization)
	if err := pg.AsOrganization(ctx, tx, organization); err != nil {
		return err
	}
	versions, err := owners(ctx, tx, organization, project, true)
	if err != nil || len(versions) == 0 {
		done.Next = nil
		return err
	}
	page, err := postgres.Groups(ctx, tx, organization, postgres.GroupQuery{Project: project, Status: grouping.Unresolved, Unassigned: true, After: *done.Next,
		Limit: applyBatch, TimeUp: s.timeUp(maxSearchTime)})
	if err != nil {
		return err
	}
	done.Looked, done.Next = done.Looked+len(page.Groups), page.Next
	if page.Incomplete {
		done.Looked = maxApplied // the next request goes on
	}
	made, err := s.assign(ctx, tx, organization, page.IDs(), versions[0].Rules)
	if err != nil {
		return err
	}
	done.Assigned += len(made)
	changed, err := postgres.Record(ctx, tx, made, request.By)
	if err != nil {
		return err
	}
	return s.Announce(ctx, tx, changed)
}

// assign decides about groups, which it locks.
func (s *Service) assign(ctx context.Context, tx pgx.Tx, organization pg.Organization, ids []string, rules grouping.Owners) (made []*postgres.Made, err error) {
	of, err := postgres.FindOwned(ctx, tx, organization, ids)
	if err != nil {
		return nil, err
	}
	locked, err := postgres.LockHeads(ctx, tx, organization, ids)
	if err != nil {
		return nil, err
	}
	for _, m := range locked {
		about := of[m.Group.ID]
		if about == nil || m.Group.Status != grouping.Unresolved {
			continue // somebody merged or decided meanwhile
		}
		if d, follows := rules.Assign(about, m.Group.State, m.Group.Version); follows {
			d.At = s.Clock().UTC().Truncate(time.Microsecond)
			m.Decisions = []grouping.Decision{d}
			made = append(made, m)
		}
	}
	return made, nil
}
