package console

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// alertsPath is the list of alerts; alerts are below it.
const alertsPath = groupsPath + "/alerts"

// alertPages show and change alerts.
type alertPages struct {
	*console
	alerts *groups.Alerts
}

func (p *alertPages) mount(r chi.Router) {
	r.Get(alertsPath, p.shows(p.list))
	r.Get(alertsPath+"/new", p.shows(p.begin))
	r.Post(alertsPath+"/new", p.changes(p.create))
	r.Get(alertsPath+"/{alert}", p.shows(p.show))
	r.Post(alertsPath+"/{alert}", p.changes(p.update))
	r.Post(alertsPath+"/{alert}/mute", p.changes(p.mute))
	r.Post(alertsPath+"/{alert}/test", p.changes(p.test))
	r.Post(alertsPath+"/{alert}/delete", p.changes(p.delete))
}

var alertFlashes = map[string]string{ // bounded by what can be done to an alert
	"alert-set": "The alert is set. It notifies of errors from now on.", "alert-changed": "The alert is changed.",
	"alert-deleted": "The alert is deleted.", "alert-muted": "The alert is muted until then.",
	"alert-unmuted": "The alert is no longer muted.", "alert-tested": "A test was sent to all recipients of this alert.",
}

type alertsPage struct {
	May    bool
	Alerts []shownAlert
}

type shownAlert struct {
	*postgres.Alert
	Href    string
	Project string
	Words   string // the rule
	Muted   bool
	Waits   int64
	Reaches string // whom it tells; empty: nobody
}

func (p *alertPages) shown(a *postgres.Alert) shownAlert {
	rule := p.byName(a.Organization, &a.AlertRule)
	return shownAlert{Alert: a, Href: alertsPath + "/" + a.ID, Project: p.directory.Name(a.Project), Words: inWords(&rule),
		Muted: a.MutedUntil.After(p.clock()), Waits: a.Groups(), Reaches: reachesInWords(p.alerts.Reaches(a.Organization, &a.AlertRule))}
}

func (p *alertPages) list(w http.ResponseWriter, r *http.Request) error {
	found, err := p.alerts.List(r.Context(), identity.FromContext(r.Context()), "")
	if err != nil {
		return err
	}
	page := alertsPage{May: may(r)}
	for _, a := range found {
		page.Alerts = append(page.Alerts, p.shown(a))
	}
	p.pages.Write(w, r, http.StatusOK, "alerts", ui.View{Title: "Alerts on errors", Data: page, Flash: ui.TakeFlash(w, r, alertFlashes)})
	return nil
}

// inWords says of what a rule notifies, and when.
func inWords(r *grouping.AlertRule) string {
	var of []string
	for _, t := range r.Triggers {
		switch t {
		case grouping.OnNew:
			of = append(of, newInWords(r.NewFrom))
		case grouping.OnRegressed:
			of = append(of, "resolved errors that come again")
		case grouping.OnUnignored:
			of = append(of, "ignored errors whose time is over")
		case grouping.OnSpiking:
			of = append(of, "errors that happen far more often than before")
		case grouping.OnMany:
			of = append(of, fmt.Sprintf("errors that come %s times within one %s", ui.Count(r.Count), groups.SpanName(r.Per)))
		case grouping.OnUsers:
			of = append(of, fmt.Sprintf("errors that affect %s users within one %s", ui.Count(r.Users), groups.SpanName(r.UsersPer)))
		}
	}
	words := "It notifies of " + strings.Join(of, ", of ")
	if len(r.Environments) > 0 {
		words += "; in " + strings.Join(r.Environments, ", ")
	}
	if r.Severities != 0 {
		words += "; of level " + strings.Join(r.Severities.Names(), ", ")
	}
	if len(r.Words) > 0 {
		words += "; with " + strings.Join(r.Words, " ")
	}
	if !r.Hours.IsZero() {
		words += "; " + hoursInWords(r.Hours)
	}
	return words + "; at most one message in " + gapText(r.Gap) + "."
}

// reachesInWords says whom an alert tells; empty: nobody.
func reachesInWords(of groups.Recipients) string {
	var words []string
	for _, w := range of.Webhooks {
		words = append(words, w.Host)
	}
	switch {
	case of.Members == 1:
		words = append(words, "1 member by mail")
	case of.Members > 1:
		words = append(words, ui.Count(int64(of.Members))+" members by mail")
	}
	return strings.Join(words, ", ")
}

func newInWords(from int64) string {
	if from == 1 {
		return "new errors"
	}
	return "new errors once they have happened " + ui.Count(from) + " times"
}

func hoursInWords(h grouping.Hours) string {
	words := "from " + groups.Clock(h.From) + " to " + groups.Clock(h.To)
	if h.Zone != "" {
		words += " in " + h.Zone
	}
	var days []string
	for _, day := range h.Days {
		days = append(days, day.String())
	}
	if len(days) > 0 {
		words += " on " + strings.Join(days, ", ")
	}
	return words
}

// gaps are the least times between messages to choose from.
var gaps = [][2]string{{"60", "1 minute"}, {"300", "5 minutes"}, {"900", "15 minutes"}, {"3600", "1 hour"}, {"21600", "6 hours"}, {"86400", "1 day"}}

func gapText(gap time.Duration) string {
	for _, known := range gaps {
		if known[0] == seconds(gap) {
			return known[1]
		}
	}
	return gap.String()
}

func seconds(of time.Duration) string { return strconv.FormatInt(int64(of/time.Second), 10) }

type alertPage struct {
	shownAlert
	Set   bool // it is there
	May   bool // the reader may change it
	Log   []shownLine
	Form  alertForm
	Mute  ui.Field
	Fault string
}

type shownLine struct {
	postgres.LoggedLine
	Href, Became string
	Held         bool
	More         int64 // groups beside the first
}

// became are outcomes in words.
var became = map[grouping.Outcome]string{ // bounded by the outcomes
	grouping.WasSent: "sent", grouping.WasTested: "a test was sent", grouping.HeldMuted: "held back: it was muted",
	grouping.HeldBelow: "held back: it has not happened often enough", grouping.HeldGathered: "waits for the next message: one was sent not long before",
	grouping.HeldHours: "waits for its hours", grouping.HeldBound: "waits: the organization was sent 60 messages within an hour",
	grouping.HeldStale: "held back: it came more than a day before", grouping.HeldDecided: "held back: somebody resolved or ignored it meanwhile",
}

func showLine(line postgres.LoggedLine) shownLine {
	shown := shownLine{LoggedLine: line, Became: became[line.Outcome], Held: line.Outcome != grouping.WasSent && line.Outcome != grouping.WasTested}
	if line.Group != "" {
		shown.Href, shown.More = groupsPath+"/"+line.Group, line.Groups-1
	}
	return shown
}

func (p *alertPages) begin(w http.ResponseWriter, r *http.Request) error {
	rule := grouping.DefaultAlertRule()
	rule.Members = []string{identity.FromContext(r.Context()).Member}
	return p.writeNew(w, r, http.StatusOK, r.URL.Query().Get("project"), &rule, nil)
}

func (p *alertPages) writeNew(w http.ResponseWriter, r *http.Request, status int, project string, rule *grouping.AlertRule, fault error) error {
	page := alertPage{May: may(r)}
	page.Form, page.Fault = p.form(identity.FromContext(r.Context()), project, rule, 0, fault)
	p.pages.Write(w, r, status, "alert", ui.View{Title: "Set an alert on errors", Data: page})
	return nil
}

func (p *alertPages) create(w http.ResponseWriter, r *http.Request, request groups.Request) error {
	project := r.PostForm.Get("project")
	if !p.directory.Owns(request.Who.Organization, project) {
		return httpapi.NotFound("project", project)
	}
	rule, err := ruleIn(r)
	var created *postgres.Alert
	if err == nil {
		created, err = p.alerts.Create(r.Context(), request, project, rule)
	}
	var invalid grouping.Invalid
	if errors.As(err, &invalid) {
		return p.writeNew(w, r, http.StatusUnprocessableEntity, project, &rule, err)
	}
	if err != nil {
		return err
	}
	return redirect(w, r, "alert-set", alertsPath+"/"+created.ID)
}

func (p *alertPages) show(w http.ResponseWriter, r *http.Request) error {
	return p.write(w, r, http.StatusOK, nil, nil)
}

// write shows an alert, with the rule that somebody has sent and what is
// wrong with it, if any.
func (p *alertPages) write(w http.ResponseWriter, r *http.Request, status int, sent *grouping.AlertRule, fault error) error {
	id, who := chi.URLParam(r, "alert"), identity.FromContext(r.Context())
	found, err := p.alerts.Find(r.Context(), who, "", id)
	if err != nil {
		return err
	}
	log, err := p.alerts.Log(r.Context(), who, "", id)
	if err != nil {
		return err
	}
	page := alertPage{
		shownAlert: p.shown(found), Set: true, May: may(r),
		Mute: ui.Field{Name: "for", Label: "Mute for", Choices: ui.NewChoices("3600", [2]string{"3600", "an hour"}, [2]string{"14400", "4 hours"},
			[2]string{"86400", "a day"}, [2]string{"604800", "a week"})},
	}
	for _, line := range log {
		page.Log = append(page.Log, showLine(line))
	}
	rule := &found.AlertRule
	if sent != nil && !errors.Is(fault, postgres.ErrAlertChanged) {
		rule = sent
	}
	page.Form, page.Fault = p.form(who, found.Project, rule, found.Version, fault)
	if errors.Is(fault, postgres.ErrAlertChanged) {
		page.Fault = "Somebody else has changed this alert meanwhile, to what you see here. Nothing of yours was saved."
	}
	p.pages.Write(w, r, status, "alert", ui.View{Title: found.Name, Of: page.Project, Data: page, Flash: ui.TakeFlash(w, r, alertFlashes)})
	return nil
}

func (p *alertPages) update(w http.ResponseWriter, r *http.Request, request groups.Request) error {
	id := chi.URLParam(r, "alert")
	found, err := p.alerts.Find(r.Context(), request.Who, "", id)
	if err != nil {
		return err
	}
	version, _ := strconv.ParseInt(r.PostForm.Get("version"), 10, 64) // else none is
	rule, err := ruleIn(r)
	if rule.MutedUntil = found.MutedUntil; err == nil { // which the form leaves as it is
		_, err = p.alerts.Update(r.Context(), request, "", id, rule, version)
	}
	var invalid grouping.Invalid
	switch {
	case errors.As(err, &invalid):
		return p.write(w, r, http.StatusUnprocessableEntity, &rule, err)
	case errors.Is(err, postgres.ErrAlertChanged):
		return p.write(w, r, http.StatusConflict, &rule, err)
	case err != nil:
		return err
	}
	return redirect(w, r, "alert-changed", alertsPath+"/"+id)
}

func (p *alertPages) mute(w http.ResponseWriter, r *http.Request, request groups.Request) error {
	id, until, flash := chi.URLParam(r, "alert"), time.Time{}, "alert-unmuted"
	if span, err := strconv.Atoi(r.PostForm.Get("for")); err == nil && span > 0 && span <= 90*24*3600 {
		until, flash = p.clock().UTC().Add(time.Duration(span)*time.Second).Truncate(time.Second), "alert-muted"
	}
	if _, err := p.alerts.Mute(r.Context(), request, id, until); err != nil {
		return err
	}
	return redirect(w, r, flash, alertsPath+"/"+id)
}

func (p *alertPages) test(w http.ResponseWriter, r *http.Request, request groups.Request) error {
	id := chi.URLParam(r, "alert")
	if _, err := p.alerts.Test(r.Context(), request, "", id); err != nil {
		return err
	}
	return redirect(w, r, "alert-tested", alertsPath+"/"+id)
}

func (p *alertPages) delete(w http.ResponseWriter, r *http.Request, request groups.Request) error {
	version, err := strconv.ParseInt(r.PostForm.Get("version"), 10, 64)
	if err != nil || version < 1 {
		return postgres.ErrAlertChanged
	}
	if _, err := p.alerts.Delete(r.Context(), request, "", chi.URLParam(r, "alert"), version); err != nil {
		return err
	}
	return redirect(w, r, "alert-deleted", alertsPath)
}
