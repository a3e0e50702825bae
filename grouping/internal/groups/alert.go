package groups

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// ErrNoProject means that the principal may read no such project.
var ErrNoProject = errors.New("there is no such project")

// Tell hands on what alerts tell, at the end of its transaction.
type Tell func(ctx context.Context, tx pgx.Tx, messages []postgres.Message) error

func lateAlerts(registerer prometheus.Registerer) prometheus.Gauge {
	return promauto.With(registerer).NewGauge(prometheus.GaugeOpts{
		Name: "weir_grouping_alerts_late_seconds", Help: "How long the first due message of an alert on errors has been due.",
	})
}

// mayReadAlerts reports whether the principal may read a project's alerts;
// empty: those of all projects that it reads.
func (s *Service) mayReadAlerts(who identity.Principal, project string) bool {
	return project == "" || s.mayRead(who, project)
}

// Alerts lists the alerts of a project by name, or of all projects if it is empty.
func (s *Service) Alerts(ctx context.Context, who identity.Principal, project string) (found []*postgres.Alert, err error) {
	if !s.mayReadAlerts(who, project) {
		return nil, ErrNoProject
	}
	err = s.read(ctx, who.Organization, func(tx pgx.Tx, organization pg.Organization) error {
		found, err = postgres.FindAlerts(ctx, tx, postgres.Project{Organization: string(organization), Name: project})
		return err
	})
	return slices.DeleteFunc(found, func(a *postgres.Alert) bool { return !s.mayRead(who, a.Project) }), err
}

// findAlert finds an alert of a project, or of any if it is empty.
func (s *Service) findAlert(ctx context.Context, tx pgx.Tx, who identity.Principal, project, id string, toChange bool) (*postgres.Alert, error) {
	if !s.mayReadAlerts(who, project) {
		return nil, ErrNoProject
	}
	found, err := postgres.FindAlert(ctx, tx, pg.Organization(who.Organization), id, toChange)
	if err == nil && (project != "" && found.Project != project || !s.mayRead(who, found.Project)) {
		err = postgres.ErrNoAlert
	}
	return found, err
}

// Alert finds an alert of a project with its log; of any project if it is empty.
func (s *Service) Alert(ctx context.Context, who identity.Principal, project, id string) (found *postgres.Alert, log []postgres.LoggedLine, err error) {
	err = s.read(ctx, who.Organization, func(tx pgx.Tx, organization pg.Organization) error {
		if found, err = s.findAlert(ctx, tx, who, project, id, false); err != nil {
			return err
		}
		log, err = postgres.FindAlertLog(ctx, tx, organization, id)
		return err
	})
	return found, log, err
}

// CreateAlert makes an alert of a project. It holds for errors accepted from now on.
func (s *Service) CreateAlert(ctx context.Context, request Request, project string, rule grouping.AlertRule) (*postgres.Alert, error) {
	now := s.Clock().UTC().Truncate(time.Microsecond)
	if err := rule.Check(identity.RolesThatRead(identity.ReadErrors), now); err != nil {
		return nil, err
	}
	if !s.mayRead(request.Who, project) {
		return nil, ErrNoProject
	}
	made, err := once(ctx, s, request, []any{project, rule}, func(tx pgx.Tx) (answer[*postgres.Alert], error) {
		a := &postgres.Alert{
			Organization: request.Who.Organization, Project: project, ID: "alr_" + strings.ToLower(rand.Text()), Version: 1, UpdatedBy: request.By.ID,
			UpdatedAt: now, ErrorAlert: grouping.ErrorAlert{AlertRule: rule, Since: now},
		}
		return answer[*postgres.Alert]{project, a}, postgres.InsertAlert(ctx, tx, a, s.MaxAlerts)
	})
	return made.Body, err
}

// UpdateAlert replaces the rule of an alert of a version.
func (s *Service) UpdateAlert(ctx context.Context, request Request, project, id string, rule grouping.AlertRule, version int64) (*postgres.Alert, error) {
	if err := rule.Check(identity.RolesThatRead(identity.ReadErrors), s.Clock()); err != nil {
		return nil, err
	}
	return s.changeAlert(ctx, request, project, id, []any{rule, version}, func(tx pgx.Tx, a *postgres.Alert, now time.Time) error {
		if a.Version != version {
			return postgres.ErrAlertChanged
		}
		lines := a.Change(rule, now)
		a.Version, a.UpdatedBy, a.UpdatedAt = a.Version+1, request.By.ID, now
		return postgres.SaveAlerts(ctx, tx, []*postgres.Alert{a}, map[string][]grouping.AlertLine{a.ID: lines}, now)
	})
}

// MuteAlert has an alert tell nothing until a time; zero ends that.
func (s *Service) MuteAlert(ctx context.Context, request Request, id string, until time.Time) (*postgres.Alert, error) {
	return s.changeAlert(ctx, request, "", id, until, func(tx pgx.Tx, a *postgres.Alert, now time.Time) error {
		rule := a.AlertRule
		rule.MutedUntil = until
		if err := rule.Check(identity.RolesThatRead(identity.ReadErrors), now); err != nil {
			return err
		}
		lines := a.Change(rule, now)
		a.Version, a.UpdatedBy, a.UpdatedAt = a.Version+1, request.By.ID, now
		return postgres.SaveAlerts(ctx, tx, []*postgres.Alert{a}, map[string][]grouping.AlertLine{a.ID: lines}, now)
	})
}

// DeleteAlert removes an alert of a version; 0: of any.
func (s *Service) DeleteAlert(ctx context.Context, request Request, project, id string, version int64) (*postgres.Alert, error) {
	return s.changeAlert(ctx, request, project, id, version, func(tx pgx.Tx, a *postgres.Alert, _ time.Time) error {
		if version != 0 && a.Version != version {
			return postgres.ErrAlertChanged
		}
		return postgres.DeleteAlert(ctx, tx, a)
	})
}

// TestAlert sends a message that is marked as a test, once a minute: else
// postgres.ErrTested.
func (s *Service) TestAlert(ctx context.Context, request Request, project, id string) (*postgres.Alert, error) {
	return s.changeAlert(ctx, request, project, id, "test", func(tx pgx.Tx, a *postgres.Alert, now time.Time) error {
		if err := postgres.TestAlert(ctx, tx, a, now); err != nil {
			return err
		}
		a.Messages++
		lines := map[string][]grouping.AlertLine{a.ID: {{Outcome: grouping.WasTested}}}
		if err := postgres.SaveAlerts(ctx, tx, []*postgres.Alert{a}, lines, now); err != nil {
			return err
		}
		return s.Tell(ctx, tx, []postgres.Message{{Alert: a, At: now, Test: true}})
	})
}

// changeAlert changes an alert of a project, or of any if it is empty, once.
func (s *Service) changeAlert(ctx context.Context, request Request, project, id string, input any,
	change func(tx pgx.Tx, a *postgres.Alert, now time.Time) error,
) (*postgres.Alert, error) {
	changed, err := once(ctx, s, request, []any{project, id, input}, func(tx pgx.Tx) (answer[*postgres.Alert], error) {
		a, err := s.findAlert(ctx, tx, request.Who, project, id, true)
		if err != nil {
			return answer[*postgres.Alert]{}, err
		}
		return answer[*postgres.Alert]{a.Project, a}, change(tx, a, s.Clock().UTC().Truncate(time.Microsecond))
	})
	return changed.Body, err
}

// SendAlerts sends what alerts have to tell until nothing is due.
func (s *Service) SendAlerts(ctx context.Context) error {
	for {
		var due int
		var first time.Time
		err := pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) error {
			messages, ended, err := postgres.SendAlerts(ctx, tx, s.Clock().UTC().Truncate(time.Microsecond), s.Projects.Hides)
			if err != nil {
				return err
			}
			if due = ended; due > 0 {
				return s.Tell(ctx, tx, messages)
			}
			first, err = postgres.FirstDue(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
		if due == 0 {
			late := 0.0
			if !first.IsZero() {
				late = max(0, s.Clock().Sub(first).Seconds())
			}
			s.late.Set(late)
			return nil
		}
	}
}
