package groups

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ruletext"
)

// Owners are rules of projects about who looks after new groups.
type Owners struct {
	db       *store
	announce Announce
}

// Versions returns the versions of a project's rules, the newest first.
func (o *Owners) Versions(ctx context.Context, organization, project string) ([]postgres.OwnerRules, error) {
	return read(ctx, o.db, organization, func(tx pgx.Tx, organization pg.Organization) ([]postgres.OwnerRules, error) {
		return owners(ctx, tx, organization, project, false)
	})
}

func owners(ctx context.Context, tx pgx.Tx, organization pg.Organization, project string, toApply bool) ([]postgres.OwnerRules, error) {
	of := postgres.Project{Organization: string(organization), Name: project}
	all, err := postgres.FindOwners(ctx, tx, []postgres.Project{of}, toApply)
	slices.Reverse(all[of])
	return all[of], err
}

// Set replaces the rules of a project. They hold for groups whose first error
// is accepted from now on. ifSince refuses others than those from then; nil: none.
func (o *Owners) Set(ctx context.Context, request Request, project string, rules grouping.Owners, ifSince *time.Time) (postgres.OwnerRules, error) {
	return once(ctx, o.db, request, []any{project, rules, ifSince, "owners"}, func(tx pgx.Tx) (_ string, last postgres.OwnerRules, err error) {
		rules := rules.ByID(o.db.members(request.Who.Organization))
		if err := rules.Check(); err != nil {
			return project, last, err
		}
		organization := pg.Organization(request.Who.Organization)
		if err := postgres.LockSettings(ctx, tx, organization, project); err != nil {
			return project, last, err
		}
		versions, err := owners(ctx, tx, organization, project, false)
		if len(versions) > 0 {
			last = versions[0]
		}
		switch {
		case err != nil:
			return project, last, err
		case ifSince != nil && !ifSince.Equal(last.Since):
			return project, last, ErrSettingsChanged
		case last.Rules.Equal(rules):
			return project, last, nil
		}
		set := postgres.OwnerRules{Since: o.db.after(last.Since), Rules: rules, By: request.By.ID}
		if err := postgres.SaveOwners(ctx, tx, organization, project, set); err != nil {
			return project, set, err
		}
		was, is := ownerLines(last.Rules), ownerLines(rules)
		after := Fields{"added": ruletext.LinesBeyond(is, was), "removed": ruletext.LinesBeyond(was, is)}
		return project, set, o.db.tell(ctx, tx, request, project, Change{Action: ownersSet, After: after})
	})
}

func ownerLines(rules grouping.Owners) string {
	lines := make([]string, len(rules))
	for i, rule := range rules {
		lines[i] = rule.String() + " " + rule.Assignee
	}
	return strings.Join(lines, "\n")
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

// Apply gives unresolved groups that nobody looks after to whom the rules name: those of
// maxApplied groups behind a place in the list. Who does so twice does nothing more.
func (o *Owners) Apply(ctx context.Context, request Request, project string, after postgres.GroupCursor) (done Applied, err error) {
	release, err := o.db.limiter.Acquire(ctx, request.Who.Organization)
	if err != nil {
		return done, err
	}
	defer release()
	done.Next = &after
	for done.Next != nil && done.Looked < maxApplied {
		err := o.db.inTx(ctx, request.Who.Organization, func(tx pgx.Tx) error { return o.apply(ctx, tx, request, project, &done) })
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (o *Owners) apply(ctx context.Context, tx pgx.Tx, request Request, project string, done *Applied) error {
	organization := pg.Organization(request.Who.Organization)
	versions, err := owners(ctx, tx, organization, project, true)
	if err != nil || len(versions) == 0 {
		done.Next = nil
		return err
	}
	page, err := postgres.Groups(ctx, tx, organization, postgres.GroupQuery{Project: project, Status: grouping.Unresolved, Unassigned: true, After: *done.Next,
		Limit: applyBatch, TimeUp: o.db.timeUp(maxSearchTime)})
	if err != nil {
		return err
	}
	done.Looked, done.Next = done.Looked+len(page.Groups), page.Next
	if page.Incomplete {
		done.Looked = maxApplied // the next request goes on
	}
	assigned, err := o.assign(ctx, tx, organization, page.IDs(), versions[0].Rules)
	if err != nil {
		return err
	}
	done.Assigned += len(assigned)
	return o.announce.record(ctx, tx, assigned, request.By)
}

// assign decides about groups, which it locks.
func (o *Owners) assign(ctx context.Context, tx pgx.Tx, organization pg.Organization, ids []string, rules grouping.Owners) (
	assigned []*postgres.DecidedGroup, err error,
) {
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
			d.At = o.db.now()
			m.Decisions = []grouping.Decision{d}
			assigned = append(assigned, m)
		}
	}
	return assigned, nil
}
