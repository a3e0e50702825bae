package groups

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// Alerts tell webhooks and members of errors. Where a
// project is asked for, an empty one stands for any.
type Alerts struct {
	db    *store
	send  Send
	limit int // of a project
	late  prometheus.Gauge
}

// Send hands on messages, at the end of their transaction.
type Send func(ctx context.Context, tx pgx.Tx, messages []postgres.Message) error

func lateAlerts(registerer prometheus.Registerer) prometheus.Gauge {
	return promauto.With(registerer).NewGauge(prometheus.GaugeOpts{
		Name: "weir_grouping_alerts_late_seconds", Help: "How long the first due message of an alert on errors has been due.",
	})
}

// List lists the alerts of a project by name.
func (a *Alerts) List(ctx context.Context, who identity.Principal, project string) ([]*postgres.Alert, error) {
	found, err := read(ctx, a.db, who.Organization, func(tx pgx.Tx, _ pg.Organization) ([]*postgres.Alert, error) {
		return postgres.FindAlerts(ctx, tx, postgres.Project{Organization: who.Organization, Name: project})
	})
	return slices.DeleteFunc(found, func(alert *postgres.Alert) bool { return !a.db.mayRead(who, alert.Project) }), err
}

func (a *Alerts) find(ctx context.Context, tx pgx.Tx, who identity.Principal, project, id string, toChange bool) (*postgres.Alert, error) {
	found, err := postgres.FindAlert(ctx, tx, pg.Organization(who.Organization), id, toChange)
	if errors.Is(err, postgres.ErrNoAlert) || err == nil && (project != "" && found.Project != project || !a.db.mayRead(who, found.Project)) {
		err = httpapi.NotFound("alert", id)
	}
	return found, err
}

// Find finds an alert.
func (a *Alerts) Find(ctx context.Context, who identity.Principal, project, id string) (*postgres.Alert, error) {
	return read(ctx, a.db, who.Organization, func(tx pgx.Tx, _ pg.Organization) (*postgres.Alert, error) {
		return a.find(ctx, tx, who, project, id, false)
	})
}

// Log finds what an alert has sent and held back.
func (a *Alerts) Log(ctx context.Context, who identity.Principal, project, id string) ([]postgres.LoggedLine, error) {
	return read(ctx, a.db, who.Organization, func(tx pgx.Tx, organization pg.Organization) ([]postgres.LoggedLine, error) {
		if _, err := a.find(ctx, tx, who, project, id, false); err != nil {
			return nil, err
		}
		return postgres.FindAlertLog(ctx, tx, organization, id)
	})
}

// Recipients are who is told by an alert, as of now.
type Recipients struct {
	Webhooks []identity.Webhook // that are switched on
	Members  int                // who get mail, unless they chose to get none
}

// Reaches finds whom a rule tells as of now.
func (a *Alerts) Reaches(organization string, rule *grouping.AlertRule) (of Recipients) {
	for _, w := range a.db.projects.Webhooks(organization) {
		chosen := slices.Contains(rule.Webhooks, w.ID) || len(rule.Webhooks) == 0 && slices.Contains(w.Events, contract.NameErrorAlertFired)
		if chosen && w.On {
			of.Webhooks = append(of.Webhooks, w)
		}
	}
	of.Members = a.db.projects.CountThatRead(organization, identity.ReadErrors, func(m identity.Member) bool {
		return slices.Contains(rule.Members, m.ID) || slices.Contains(rule.Roles, m.Role)
	})
	return of
}

// check returns the first fault of a rule, in which members then have their ids. A member who is removed later is
// taken out of it; a webhook that is deleted stays, and may stay when the rule changes, so that others are not told instead.
func (a *Alerts) check(organization string, rule *grouping.AlertRule, before grouping.AlertRule, now time.Time) error {
	var named []string
	*rule = rule.Renamed(func(assignee string) string {
		id := a.db.assignee(organization, assignee)
		if strings.HasPrefix(id, "mem_") {
			named = append(named, id)
		}
		return id
	})
	if err := rule.Check(identity.RolesThatRead(identity.ReadErrors), now); err != nil {
		return err
	}
	if err := a.db.checkMembers(organization, "mail_members", rule.Members...); err != nil {
		return err
	}
	if err := a.db.checkMembers(organization, "q", named...); err != nil {
		return err
	}
	added := slices.DeleteFunc(slices.Clone(rule.Webhooks), func(id string) bool { return slices.Contains(before.Webhooks, id) })
	return a.db.checkWebhooks(organization, "webhooks", added...)
}

// Create makes an alert of a project. It holds for errors accepted from now on.
func (a *Alerts) Create(ctx context.Context, request Request, project string, rule grouping.AlertRule) (*postgres.Alert, error) {
	return once(ctx, a.db, request, []any{project, rule}, func(tx pgx.Tx) (string, *postgres.Alert, error) {
		now := a.db.now()
		if err := a.check(request.Who.Organization, &rule, grouping.AlertRule{}, now); err != nil {
			return project, nil, err
		}
		alert := &postgres.Alert{
			Organization: request.Who.Organization, Project: project, ID: "alr_" + strings.ToLower(rand.Text()), Version: 1, UpdatedBy: request.By.ID,
			UpdatedAt: now, ErrorAlert: grouping.ErrorAlert{AlertRule: rule, Since: now},
		}
		if err := postgres.InsertAlert(ctx, tx, alert, a.limit); err != nil {
			return project, alert, err
		}
		return project, alert, a.db.tell(ctx, tx, request, project, changeOf(alertCreated, alert, nil, alertFields(rule)))
	})
}

// Update replaces the rule of an alert of a version.
func (a *Alerts) Update(ctx context.Context, request Request, project, id string, rule grouping.AlertRule, version int64) (*postgres.Alert, error) {
	return a.change(ctx, request, project, id, []any{rule, version}, func(tx pgx.Tx, alert *postgres.Alert, now time.Time) error {
		if alert.Version != version {
			return postgres.ErrAlertChanged
		}
		if err := a.check(request.Who.Organization, &rule, alert.AlertRule, now); err != nil {
			return err
		}
		return a.saveRule(ctx, tx, request, alert, rule, now)
	})
}

// Mute has an alert tell nothing until a time; zero ends that.
func (a *Alerts) Mute(ctx context.Context, request Request, id string, until time.Time) (*postgres.Alert, error) {
	return a.change(ctx, request, "", id, until, func(tx pgx.Tx, alert *postgres.Alert, now time.Time) error {
		rule := alert.AlertRule
		rule.MutedUntil = until
		if err := rule.Check(identity.RolesThatRead(identity.ReadErrors), now); err != nil {
			return err
		}
		return a.saveRule(ctx, tx, request, alert, rule, now)
	})
}

func (a *Alerts) saveRule(ctx context.Context, tx pgx.Tx, request Request, alert *postgres.Alert, rule grouping.AlertRule, now time.Time) error {
	before := alertFields(alert.AlertRule)
	lines := alert.Change(rule, now)
	alert.Version, alert.UpdatedBy, alert.UpdatedAt = alert.Version+1, request.By.ID, now
	if err := postgres.SaveAlerts(ctx, tx, []*postgres.Alert{alert}, map[string][]grouping.AlertLine{alert.ID: lines}, now); err != nil {
		return err
	}
	return a.db.tell(ctx, tx, request, alert.Project, changeOf(alertChanged, alert, before, alertFields(rule)))
}

// Delete removes an alert of a version; 0: of any.
func (a *Alerts) Delete(ctx context.Context, request Request, project, id string, version int64) (*postgres.Alert, error) {
	return a.change(ctx, request, project, id, version, func(tx pgx.Tx, alert *postgres.Alert, _ time.Time) error {
		if version != 0 && alert.Version != version {
			return postgres.ErrAlertChanged
		}
		if err := postgres.DeleteAlert(ctx, tx, alert); err != nil {
			return err
		}
		return a.db.tell(ctx, tx, request, alert.Project, changeOf(alertDeleted, alert, alertFields(alert.AlertRule), nil))
	})
}

// Test sends a message that is marked as a test, once a minute: else
// postgres.ErrTested.
func (a *Alerts) Test(ctx context.Context, request Request, project, id string) (*postgres.Alert, error) {
	return a.change(ctx, request, project, id, "test", func(tx pgx.Tx, alert *postgres.Alert, now time.Time) error {
		if err := postgres.TestAlert(ctx, tx, alert, now); err != nil {
			return err
		}
		alert.Messages++
		lines := map[string][]grouping.AlertLine{alert.ID: {{Outcome: grouping.WasTested}}}
		if err := postgres.SaveAlerts(ctx, tx, []*postgres.Alert{alert}, lines, now); err != nil {
			return err
		}
		return a.send(ctx, tx, []postgres.Message{{Alert: alert, At: now, Test: true}})
	})
}

// change changes an alert, once.
func (a *Alerts) change(ctx context.Context, request Request, project, id string, input any,
	change func(tx pgx.Tx, alert *postgres.Alert, now time.Time) error,
) (*postgres.Alert, error) {
	return once(ctx, a.db, request, []any{project, id, input}, func(tx pgx.Tx) (string, *postgres.Alert, error) {
		alert, err := a.find(ctx, tx, request.Who, project, id, true)
		if err != nil {
			return "", nil, err
		}
		return alert.Project, alert, change(tx, alert, a.db.now())
	})
}

// SendDue sends messages of alerts until nothing is due.
func (a *Alerts) SendDue(ctx context.Context) error {
	var first time.Time
	err := repeat(ctx, a.db.pool, func(tx pgx.Tx) (more bool, err error) {
		messages, due, err := postgres.SendAlerts(ctx, tx, a.db.now(), a.db.projects.Hides)
		if err != nil {
			return false, err
		}
		if due > 0 {
			return true, a.send(ctx, tx, messages)
		}
		first, err = postgres.FirstDue(ctx, tx)
		return false, err
	})
	if err != nil {
		return err
	}
	late := 0.0
	if !first.IsZero() {
		late = max(0, a.db.clock().Sub(first).Seconds())
	}
	a.late.Set(late)
	return nil
}

// ParseClock reads a time of the day as minutes.
func ParseClock(field, text string) (minutes int, err error) {
	at, err := time.Parse("15:04", text)
	if err != nil {
		return 0, grouping.Invalid{Field: field, Detail: fmt.Sprintf("%q is not a time of day.", text), Fix: "Use 00:00 to 23:59."}
	}
	return at.Hour()*60 + at.Minute(), nil
}

// Clock writes minutes as a time of the day.
func Clock(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

// SpanName is the name of a span; empty: it is none.
func SpanName(span time.Duration) string {
	for name, known := range grouping.Spans {
		if known == span {
			return name
		}
	}
	return ""
}
