package groups

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// RulesAt returns the rules of a project for errors that were accepted at a
// time. The caller's transaction must see the project.
func (s *Service) RulesAt(ctx context.Context, tx pgx.Tx, of postgres.Project, learned grouping.Learned, accepted time.Time) (*grouping.Ruleset, error) {
	return s.rules.At(ctx, tx, of, learned, accepted)
}

// rulesMargin is how long after it was set a version begins to hold; see mapMargin.
const rulesMargin = mapMargin

// Rules returns the newest rules of a project.
func (s *Service) Rules(ctx context.Context, organization, project string) (found postgres.Rules, err error) {
	err = s.read(ctx, organization, func(tx pgx.Tx, _ pg.Organization) (err error) {
		found, err = postgres.FindRules(ctx, tx, postgres.Project{Organization: organization, Name: project})
		return err
	})
	return found, err
}

// RulesVersion returns a version. If it is not kept, the error is postgres.ErrNoRules.
func (s *Service) RulesVersion(ctx context.Context, organization, project string, version int64) (found postgres.Rules, err error) {
	err = s.read(ctx, organization, func(tx pgx.Tx, _ pg.Organization) (err error) {
		found, err = postgres.FindRulesVersion(ctx, tx, postgres.Project{Organization: organization, Name: project}, version)
		return err
	})
	return found, err
}

// RulesVersions lists the versions of a project's rules before a number, the newest first.
func (s *Service) RulesVersions(ctx context.Context, organization, project string, before int64, limit int) (found []postgres.Rules, err error) {
	err = s.read(ctx, organization, func(tx pgx.Tx, _ pg.Organization) (err error) {
		found, err = postgres.FindRulesVersions(ctx, tx, postgres.Project{Organization: organization, Name: project}, before, limit)
		return err
	})
	return found, err
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

// SetRules sets the rules of a project, for errors that are accepted two
// seconds later or after that. The same text again changes nothing.
func (s *Service) SetRules(ctx context.Context, request Request, project string, change RulesChange) (postgres.Rules, error) {
	answer, err := once(ctx, s, request, []any{project, change}, func(tx pgx.Tx) (made answer[postgres.Rules], err error) {
		of := postgres.Project{Organization: request.Who.Organization, Name: project}
		last, err := postgres.LockRules(ctx, tx, of)
		if err != nil {
			return made, err
		}
		if change.IfVersion != nil && *change.IfVersion != last.Version {
			return made, RulesConflict{*change.IfVersion, last}
		}
		if change.Restore > 0 {
			restored, err := postgres.FindRulesVersion(ctx, tx, of, change.Restore)
			if err != nil {
				return made, err
			}
			change.Text = restored.Text
		}
		set := grouping.RulesSet{At: s.Clock().UTC().Truncate(time.Microsecond), Text: change.Text, Note: change.Note, Restored: change.Restore}
		if err := set.Check(); err != nil || last.Text == change.Text {
			return answerOf(project, last), err
		}
		last, err = postgres.SaveRules(ctx, tx, of, last.Version, set, request.By, s.rulesHold)
		return answerOf(project, last), err
	})
	return answer.Body, err
}

// rulesHold is from when on a change of rules holds.
func (s *Service) rulesHold() time.Time {
	return s.Clock().UTC().Truncate(time.Microsecond).Add(rulesMargin)
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

// PreviewRules tries rules on errors of the last days.
func (s *Service) PreviewRules(ctx context.Context, organization, project, text string) (made RulesPreview, err error) {
	set, err := grouping.ParseRules(text)
	if err != nil {
		return made, err
	}
	now := s.Clock().UTC()
	made.Since = now.AddDate(0, 0, -previewDays)
	err = s.read(ctx, organization, func(tx pgx.Tx, _ pg.Organization) (err error) {
		of := postgres.Project{Organization: organization, Name: project}
		made.Preview, made.Incomplete, err = s.rules.Preview(ctx, tx, of, set, made.Since, now.Add(rulesMargin), s.timeUp(previewTime))
		return err
	})
	return made, err
}
