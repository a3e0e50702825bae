package groups

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
)

// Rules say how errors of projects are grouped.
type Rules struct {
	db   *store
	book *postgres.RuleBook
}

// rulesMargin is how long after it was set a version begins to hold; see mapMargin.
const rulesMargin = mapMargin

// Newest returns the newest rules of a project.
func (r *Rules) Newest(ctx context.Context, organization, project string) (postgres.Rules, error) {
	return read(ctx, r.db, organization, func(tx pgx.Tx, _ pg.Organization) (postgres.Rules, error) {
		return postgres.FindRules(ctx, tx, postgres.Project{Organization: organization, Name: project})
	})
}

// Version returns a version.
func (r *Rules) Version(ctx context.Context, organization, project string, version int64) (postgres.Rules, error) {
	return read(ctx, r.db, organization, func(tx pgx.Tx, _ pg.Organization) (postgres.Rules, error) {
		return rulesVersion(ctx, tx, postgres.Project{Organization: organization, Name: project}, version)
	})
}

func rulesVersion(ctx context.Context, tx pgx.Tx, of postgres.Project, version int64) (postgres.Rules, error) {
	found, err := postgres.FindRulesVersion(ctx, tx, of, version)
	if errors.Is(err, postgres.ErrNoRules) {
		err = noRules(strconv.FormatInt(version, 10))
	}
	return found, err
}

func noRules(version string) error {
	return httpapi.NotFound("version of rules, or it is no longer kept:", version)
}

// ParseRulesVersion reads the number of a version.
func ParseRulesVersion(text string) (int64, error) {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 1 {
		return 0, noRules(text)
	}
	return version, nil
}

// Versions lists the versions of a project's rules before a number, the newest first.
func (r *Rules) Versions(ctx context.Context, organization, project string, before int64, limit int) ([]postgres.Rules, error) {
	return read(ctx, r.db, organization, func(tx pgx.Tx, _ pg.Organization) ([]postgres.Rules, error) {
		return postgres.FindRulesVersions(ctx, tx, postgres.Project{Organization: organization, Name: project}, before, limit)
	})
}

// A RulesChange is what somebody wants to be a project's rules.
type RulesChange struct {
	Text      string
	Note      string
	IfVersion *int64 // refuses another version; nil: none
	Restore   int64  // the version whose text it is; 0: none
}

// A RulesConflict means that the rules were changed meanwhile.
type RulesConflict struct {
	Wanted int64
	Rules  postgres.Rules // as they are
}

func (c RulesConflict) Error() string {
	return fmt.Sprintf("The rules are at version %d, not %d: somebody changed them meanwhile.", c.Rules.Version, c.Wanted)
}

// Set sets the rules of a project, for errors that are accepted two
// seconds later or after that. The same text again changes nothing.
func (r *Rules) Set(ctx context.Context, request Request, project string, change RulesChange) (postgres.Rules, error) {
	return once(ctx, r.db, request, []any{project, change}, func(tx pgx.Tx) (_ string, last postgres.Rules, err error) {
		of := postgres.Project{Organization: request.Who.Organization, Name: project}
		if last, err = postgres.LockRules(ctx, tx, of); err != nil {
			return project, last, err
		}
		if change.IfVersion != nil && *change.IfVersion != last.Version {
			return project, last, RulesConflict{*change.IfVersion, last}
		}
		if change.Restore > 0 {
			restored, err := rulesVersion(ctx, tx, of, change.Restore)
			if err != nil {
				return project, last, err
			}
			change.Text = restored.Text
		}
		set := grouping.RulesSet{At: r.db.now(), Text: change.Text, Note: change.Note, Restored: change.Restore}
		if err := set.Check(); err != nil || last.Text == change.Text {
			return project, last, err
		}
		former := last
		if last, err = postgres.SaveRules(ctx, tx, of, former.Version, set, request.By, func() time.Time { return r.db.now().Add(rulesMargin) }); err != nil {
			return project, last, err
		}
		return project, last, r.tell(ctx, tx, request, project, former, last)
	})
}

// tell reports a new version. Its lines are only in the list of versions if nothing but their order has changed.
func (r *Rules) tell(ctx context.Context, tx pgx.Tx, request Request, project string, former, last postgres.Rules) error {
	before, after := Fields{}, Fields{
		"version": strconv.FormatInt(last.Version, 10), "note": last.Note,
		"added": linesBeyond(last.Text, former.Text), "removed": linesBeyond(former.Text, last.Text),
	}
	if former.Version > 0 {
		before["version"] = strconv.FormatInt(former.Version, 10)
	}
	if last.Restored > 0 {
		after["restored_version"] = strconv.FormatInt(last.Restored, 10)
	}
	return r.db.tell(ctx, tx, request, project, Change{Action: rulesSet, Before: before, After: after})
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
func (r *Rules) Preview(ctx context.Context, organization, project, text string) (RulesPreview, error) {
	set, err := grouping.ParseRules(text)
	if err != nil {
		return RulesPreview{}, err
	}
	now := r.db.clock().UTC()
	return read(ctx, r.db, organization, func(tx pgx.Tx, _ pg.Organization) (made RulesPreview, err error) {
		of := postgres.Project{Organization: organization, Name: project}
		made.Since = now.AddDate(0, 0, -previewDays)
		made.Preview, made.Incomplete, err = r.book.Preview(ctx, tx, of, set, made.Since, now.Add(rulesMargin), r.db.timeUp(previewTime))
		return made, err
	})
}
