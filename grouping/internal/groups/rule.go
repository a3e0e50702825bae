package groups

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ruletext"
)

// Rules say how errors of projects are grouped.
type Rules struct {
	db   *store
	book *postgres.RuleBook
}

// rulesMargin is how long after it was set a version begins to hold; see mapMargin.
const rulesMargin = mapMargin

// Versions lists the versions of a project's rules, which who may read.
func (r *Rules) Versions(ctx context.Context, who identity.Principal, project string) ruletext.Lister {
	return func(before int64, limit int) ([]ruletext.Version, error) {
		return read(ctx, r.db, who.Organization, func(tx pgx.Tx, _ pg.Organization) ([]ruletext.Version, error) {
			return postgres.RuleVersions(ctx, tx, postgres.Project{Organization: who.Organization, Name: project}, before, limit)
		})
	}
}

// Set sets the rules of a project, for errors that are accepted two
// seconds later or after that. The same text again changes nothing.
func (r *Rules) Set(ctx context.Context, request Request, wish ruletext.Wish) (ruletext.Version, error) {
	return once(ctx, r.db, request, wish, func(tx pgx.Tx) (_ string, next ruletext.Version, err error) {
		of := postgres.Project{Organization: request.Who.Organization, Name: wish.Project}
		if err := postgres.LockRules(ctx, tx, of); err != nil {
			return of.Name, next, err
		}
		list := func(before int64, limit int) ([]ruletext.Version, error) {
			return postgres.RuleVersions(ctx, tx, of, before, limit)
		}
		former, next, err := wish.Next(list, checkRules)
		if err != nil || next.Number == former.Number {
			return of.Name, next, err
		}
		since := func() time.Time { return r.db.now().Add(rulesMargin) }
		if next, err = postgres.SaveRules(ctx, tx, of, next, r.db.now(), request.By, since); err != nil {
			return of.Name, next, err
		}
		before, after := ruletext.Changed(former, next)
		return of.Name, next, r.db.tell(ctx, tx, request, of.Name, Change{Action: rulesSet, Before: before, After: after})
	})
}

func checkRules(text string) error {
	_, err := grouping.ParseRules(text)
	return Problem(err)
}

// A RulesPreview is what rules would do to the errors of the last days.
type RulesPreview struct {
	grouping.Preview
	Since      time.Time
	Incomplete bool // there are more groups than were looked at
}

// Bounds of a preview.
const (
	previewDays = 7
	previewTime = 4 * time.Second
)

// Preview tries rules on errors of the last days.
func (r *Rules) Preview(ctx context.Context, who identity.Principal, project, text string) (RulesPreview, error) {
	set, err := grouping.ParseRules(text)
	if err != nil {
		return RulesPreview{}, Problem(err)
	}
	now := r.db.clock().UTC()
	return read(ctx, r.db, who.Organization, func(tx pgx.Tx, _ pg.Organization) (made RulesPreview, err error) {
		of := postgres.Project{Organization: who.Organization, Name: project}
		made.Since = now.AddDate(0, 0, -previewDays)
		made.Preview, made.Incomplete, err = r.book.Preview(ctx, tx, of, set, made.Since, now.Add(rulesMargin), r.db.timeUp(previewTime))
		return made, err
	})
}
