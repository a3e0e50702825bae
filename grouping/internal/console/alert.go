package console

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	groupinghttp "github.com/weirlog/weir/grouping/internal/http"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// alertsPath is the list of alerts; alerts are below it.
const alertsPath = groupsPath + "/alerts"

func (c *console) mountAlerts(r chi.Router) {
	r.Get(alertsPath, c.pages.Handle(c.showAlerts))
	r.Get(alertsPath+"/new", c.pages.Handle(c.newAlert))
	r.Post(alertsPath+"/new", c.pages.Handle(c.createAlert))
	r.Get(alertsPath+"/{alert}", c.pages.Handle(c.showAlert))
	r.Post(alertsPath+"/{alert}", c.pages.Handle(c.updateAlert))
	r.Post(alertsPath+"/{alert}/mute", c.pages.Handle(c.muteAlert))
	r.Post(alertsPath+"/{alert}/test", c.pages.Handle(c.testAlert))
	r.Post(alertsPath+"/{alert}/delete", c.pages.Handle(c.deleteAlert))
}

var alertFlashes = map[string]string{ // bounded by what can be done to an alert
	"alert-set": "The alert is set. It tells of errors that come from now on.", "alert-changed": "The alert is changed.",
	"alert-deleted": "The alert is gone. Nothing is told by it any more.", "alert-muted": "Nothing is told by the alert until then.",
	"alert-unmuted": "The alert tells again.", "alert-tested": "A test is sent to all who are told by this alert.",
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
}

func (c *console) showOfAlert(a *postgres.Alert) shownAlert {
	return shownAlert{Alert: a, Href: alertsPath + "/" + a.ID, Project: c.Directory.Name(a.Project), Words: inWords(&a.AlertRule),
		Muted: a.MutedUntil.After(c.Clock()), Waits: int64(len(a.Listed)) + a.More}
}

func (c *console) showAlerts(w http.ResponseWriter, r *http.Request) error {
	who := identity.FromContext(r.Context())
	found, err := c.Service.Alerts(r.Context(), who, "")
	if err != nil {
		return err
	}
	page := alertsPage{May: identity.RoleDecides(who.Role())}
	for _, a := range found {
		page.Alerts = append(page.Alerts, c.showOfAlert(a))
	}
	c.pages.Write(w, r, http.StatusOK, "alerts", ui.View{Title: "Alerts on errors", Data: page, Flash: ui.TakeFlash(w, r, alertFlashes)})
	return nil
}

// inWords says what a rule tells, and when.
func inWords(r *grouping.AlertRule) string {
	var tells []string
	for _, t := range r.Triggers {
		switch t {
		case grouping.OnNew:
			tells = append(tells, newInWords(r.NewFrom))
		case grouping.OnRegressed:
			tells = append(tells, "resolved errors that come again")
		case grouping.OnUnignored:
			tells = append(tells, "ignored errors whose time is over")
		case grouping.OnSpiking:
			tells = append(tells, "errors that happen far more often than before")
		case grouping.OnMany:
			tells = append(tells, fmt.Sprintf("errors that come %s times within one %s", ui.Count(r.Count), perName(r.Per)))
		case grouping.OnUsers:
			tells = append(tells, fmt.Sprintf("errors that affect %s users within one %s", ui.Count(r.Users), perName(r.UsersPer)))
		}
	}
	words := "It tells of " + strings.Join(tells, ", of ")
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

func newInWords(from int64) string {
	if from == 1 {
		return "new errors"
	}
	return "new errors once they have happened " + ui.Count(from) + " times"
}

func perName(per time.Duration) string {
	for name, span := range grouping.Spans {
		if span == per {
			return name
		}
	}
	return ""
}

func hoursInWords(h grouping.Hours) string {
	words := "from " + groupinghttp.Clock(h.From) + " to " + groupinghttp.Clock(h.To)
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

// An alertForm is the form of a rule.
type alertForm struct {
	Begin, End []ui.Field
	Triggers   ui.Checks
	Levels     ui.Checks
	Days       ui.Checks
	Mail       ui.Checks
	Version    int64
	Key        string // idempotency key
}

var triggerTexts = [][2]string{
	{string(grouping.OnNew), "new errors"}, {string(grouping.OnRegressed), "resolved ones that come again"},
	{string(grouping.OnUnignored), "ignored ones whose time is over"}, {string(grouping.OnSpiking), "ones that happen far more often than before"},
	{string(grouping.OnMany), "so many of one kind within a time"},
	{string(grouping.OnUsers), "ones that affect so many users within a time"},
}

// checks are boxes, of which some are checked.
func checks(name, legend string, pairs [][2]string, checked func(value string) bool) ui.Checks {
	of := ui.Checks{Name: name, Legend: legend}
	for _, pair := range pairs {
		of.Choices = append(of.Choices, ui.Choice{Value: pair[0], Text: pair[1], Selected: checked(pair[0])})
	}
	return of
}

func pairsOf(texts []string) (pairs [][2]string) {
	for _, text := range texts {
		pairs = append(pairs, [2]string{text, text})
	}
	return pairs
}

// spans are those within which errors and users are counted.
var spans = [][2]string{{"minute", "a minute"}, {"hour", "an hour"}, {"day", "a day"}, {"week", "a week"}}

func (c *console) alertForm(who identity.Principal, project string, rule *grouping.AlertRule, version int64, fault error) (form alertForm, general string) {
	form.Version, form.Key = version, rand.Text()
	if version == 0 {
		projects := ui.Field{Name: "project", Label: "Project"}
		for _, p := range c.Directory.Projects(who.Organization) {
			projects.Choices = append(projects.Choices, ui.Choice{Value: p.Project, Text: p.Name, Selected: p.Project == project})
		}
		form.Begin = append(form.Begin, projects)
	}
	many, count, per := rule.Has(grouping.OnMany), rule.Count, perName(rule.Per)
	if !many {
		count, per = 100, "hour"
	}
	users, usersPer := rule.Users, perName(rule.UsersPer)
	if !rule.Has(grouping.OnUsers) {
		users, usersPer = 10, "hour"
	}
	number := func(name, label, hint string, value int64) ui.Field {
		return ui.Field{Name: name, Label: label, Type: "number", Value: strconv.FormatInt(value, 10), Hint: hint, Required: true}
	}
	form.Begin = append(form.Begin, ui.Field{Name: "name", Label: "Name", Value: rule.Name, MaxLength: grouping.MaxAlertName, Required: true, Autocomplete: "off"})
	form.Triggers = checks("triggers", "It tells of", triggerTexts, func(value string) bool { return rule.Has(grouping.Trigger(value)) })
	hours := [2]string{groupinghttp.Clock(rule.Hours.From), groupinghttp.Clock(rule.Hours.To)}
	if rule.Hours.IsZero() {
		hours = [2]string{}
	}
	form.End = []ui.Field{
		number("new_from", "New after so many", "1: at once. Many errors come only once.", rule.NewFrom),
		number("count", "So many", "Of one kind, for “so many of one kind”.", count),
		{Name: "per", Label: "Within", Choices: ui.NewChoices(per, spans...)},
		number("users", "So many users", "Of one kind, for “so many users”. Exact to 512; more are estimated, to about 6 %.", users),
		{Name: "users_per", Label: "Users within", Choices: ui.NewChoices(usersPer, spans...)},
		{Name: "environments", Label: "Environments", Value: strings.Join(rule.Environments, ", "), Optional: true, Hint: "With commas between them. Empty: all."},
		{Name: "q", Label: "Title, type or culprit", Value: strings.Join(rule.Words, " "), Optional: true, Hint: "Words that all stand there."},
		{Name: "gap_seconds", Label: "At most one message in", Choices: ui.NewChoices(seconds(rule.Gap), gaps...)},
		{Name: "hours/from", Label: "Told from", Type: "time", Value: hours[0], Optional: true, Hint: "What comes outside waits. Empty: at any time."},
		{Name: "hours/to", Label: "Told to", Type: "time", Value: hours[1], Optional: true},
		{Name: "hours/time_zone", Label: "Time zone", Value: rule.Hours.Zone, Optional: true, Hint: "Such as Europe/Berlin. Empty: UTC."},
	}
	var invalid grouping.Invalid
	if errors.As(fault, &invalid) {
		if !placed(form.Begin, invalid) && !placed(form.End, invalid) {
			general = invalid.Error()
		}
	}
	var days [][2]string
	for day := range 7 {
		weekday := time.Weekday((day + 1) % 7)
		days = append(days, [2]string{strconv.Itoa(int(weekday)), weekday.String()})
	}
	form.Days = checks("days", "On these days; none: each", days, func(value string) bool {
		return slices.ContainsFunc(rule.Hours.Days, func(day time.Weekday) bool { return strconv.Itoa(int(day)) == value })
	})
	form.Levels = checks("levels", "Of these levels; none: all", pairsOf([]string{"debug", "info", "warn", "error", "fatal"}), func(value string) bool {
		level, _ := grouping.ParseSeverity(value)
		return rule.Severities&level != 0
	})
	form.Mail = mailOf(who, rule)
	return form, general
}

// placed puts a fault at its field.
func placed(fields []ui.Field, invalid grouping.Invalid) (found bool) {
	for i := range fields {
		if fields[i].Name == invalid.Field {
			fields[i].Fault, found = invalid.Error(), true
		}
	}
	return found
}

func mailOf(who identity.Principal, rule *grouping.AlertRule) ui.Checks {
	of := ui.Checks{Name: "mail", Legend: "Mail goes to"}
	for _, role := range identity.RolesThatRead(identity.ReadErrors) {
		of.Choices = append(of.Choices, ui.Choice{Value: role, Text: role + "s", Selected: slices.Contains(rule.Roles, role)})
	}
	members := rule.Members
	if !slices.Contains(members, who.Member) {
		members = append([]string{who.Member}, members...)
	}
	for _, member := range members {
		choice := ui.Choice{Value: "member:" + member, Text: member, Selected: slices.Contains(rule.Members, member)}
		if member == who.Member {
			choice.Text = "you"
		}
		of.Choices = append(of.Choices, choice)
	}
	return of
}

// ruleIn reads the form of a rule.
func ruleIn(r *http.Request) (rule grouping.AlertRule, err error) {
	field := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	number := func(name string) int64 {
		n, err := strconv.ParseInt(field(name), 10, 64)
		if err != nil {
			return -1 // which is none of any field
		}
		return n
	}
	rule = grouping.AlertRule{Name: field("name"), NewFrom: number("new_from"), Words: strings.Fields(field("q")),
		Gap: time.Duration(min(max(number("gap_seconds"), 0), 1<<30)) * time.Second}
	for _, trigger := range r.PostForm["triggers"] {
		rule.Triggers = append(rule.Triggers, grouping.Trigger(trigger))
	}
	if rule.Has(grouping.OnMany) {
		rule.Count, rule.Per = number("count"), grouping.Spans[field("per")]
	}
	if rule.Has(grouping.OnUsers) {
		rule.Users, rule.UsersPer = number("users"), grouping.Spans[field("users_per")]
	}
	for _, word := range r.PostForm["levels"] {
		level, _ := grouping.ParseSeverity(word)
		rule.Severities |= level
	}
	for name := range strings.SplitSeq(field("environments"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			rule.Environments = append(rule.Environments, name)
		}
	}
	for _, to := range r.PostForm["mail"] {
		if member, is := strings.CutPrefix(to, "member:"); is {
			rule.Members = append(rule.Members, member)
		} else {
			rule.Roles = append(rule.Roles, to)
		}
	}
	rule.Hours, err = hoursIn(r)
	return rule, err
}

func hoursIn(r *http.Request) (h grouping.Hours, err error) {
	from, to := r.PostForm.Get("hours/from"), r.PostForm.Get("hours/to")
	for _, text := range r.PostForm["days"] {
		day, err := strconv.Atoi(text)
		if err != nil {
			day = -1
		}
		h.Days = append(h.Days, time.Weekday(day))
	}
	if h.Zone = strings.TrimSpace(r.PostForm.Get("hours/time_zone")); from == "" && to == "" {
		if len(h.Days) == 0 {
			h.Zone = "" // of no hours
		}
		return h, nil
	}
	if h.From, err = groupinghttp.ParseClock("hours/from", from); err == nil {
		h.To, err = groupinghttp.ParseClock("hours/to", to)
	}
	return h, err
}

func (c *console) newAlert(w http.ResponseWriter, r *http.Request) error {
	who, rule := identity.FromContext(r.Context()), grouping.DefaultAlertRule()
	rule.Members = []string{who.Member}
	return c.writeNewAlert(w, r, http.StatusOK, r.URL.Query().Get("project"), &rule, nil)
}

func (c *console) writeNewAlert(w http.ResponseWriter, r *http.Request, status int, project string, rule *grouping.AlertRule, fault error) error {
	who := identity.FromContext(r.Context())
	page := alertPage{May: identity.RoleDecides(who.Role())}
	page.Form, page.Fault = c.alertForm(who, project, rule, 0, fault)
	c.pages.Write(w, r, status, "alert", ui.View{Title: "Set an alert on errors", Data: page})
	return nil
}

func (c *console) createAlert(w http.ResponseWriter, r *http.Request) error {
	request, err := requestOf(w, r)
	if err != nil {
		return err
	}
	project := r.PostForm.Get("project")
	if !c.Directory.Owns(request.Who.Organization, project) {
		return httpapi.NotFound("project", project)
	}
	rule, err := ruleIn(r)
	var made *postgres.Alert
	if err == nil {
		made, err = c.Service.CreateAlert(r.Context(), request, project, rule)
	}
	var invalid grouping.Invalid
	if errors.As(err, &invalid) {
		return c.writeNewAlert(w, r, http.StatusUnprocessableEntity, project, &rule, err)
	}
	if err != nil {
		return groupinghttp.AlertProblem(err, project, "")
	}
	return alertDone(w, r, "alert-set", alertsPath+"/"+made.ID)
}

func alertDone(w http.ResponseWriter, r *http.Request, flash, to string) error {
	ui.SetFlash(w, flash)
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

func (c *console) showAlert(w http.ResponseWriter, r *http.Request) error {
	return c.writeAlert(w, r, http.StatusOK, nil, nil)
}

// writeAlert shows an alert, with the rule that somebody has sent and what is
// wrong with it, if any.
func (c *console) writeAlert(w http.ResponseWriter, r *http.Request, status int, sent *grouping.AlertRule, fault error) error {
	id, who := chi.URLParam(r, "alert"), identity.FromContext(r.Context())
	found, log, err := c.Service.Alert(r.Context(), who, "", id)
	if err != nil {
		return groupinghttp.AlertProblem(err, "", id)
	}
	page := alertPage{
		shownAlert: c.showOfAlert(found), Set: true, May: identity.RoleDecides(who.Role()),
		Mute: ui.Field{Name: "for", Label: "Tell nothing for", Choices: ui.NewChoices("3600", [2]string{"3600", "an hour"}, [2]string{"14400", "4 hours"},
			[2]string{"86400", "a day"}, [2]string{"604800", "a week"})},
	}
	for _, line := range log {
		page.Log = append(page.Log, showLine(line))
	}
	rule := &found.AlertRule
	if sent != nil && !errors.Is(fault, postgres.ErrAlertChanged) {
		rule = sent
	}
	page.Form, page.Fault = c.alertForm(who, found.Project, rule, found.Version, fault)
	if errors.Is(fault, postgres.ErrAlertChanged) {
		page.Fault = "Somebody else has changed this alert meanwhile, to what you see here. Nothing of yours was saved."
	}
	c.pages.Write(w, r, status, "alert", ui.View{Title: found.Name, Of: page.Project, Data: page, Flash: ui.TakeFlash(w, r, alertFlashes)})
	return nil
}

func (c *console) updateAlert(w http.ResponseWriter, r *http.Request) error {
	request, err := requestOf(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "alert")
	version, _ := strconv.ParseInt(r.PostForm.Get("version"), 10, 64) // else none is
	rule, err := ruleIn(r)
	if err == nil {
		rule.MutedUntil, err = c.mutedUntil(r, id)
	}
	if err == nil {
		_, err = c.Service.UpdateAlert(r.Context(), request, "", id, rule, version)
	}
	var invalid grouping.Invalid
	switch {
	case errors.As(err, &invalid):
		return c.writeAlert(w, r, http.StatusUnprocessableEntity, &rule, err)
	case errors.Is(err, postgres.ErrAlertChanged):
		return c.writeAlert(w, r, http.StatusConflict, &rule, err)
	case err != nil:
		return groupinghttp.AlertProblem(err, "", id)
	}
	return alertDone(w, r, "alert-changed", alertsPath+"/"+id)
}

// mutedUntil is what the form of a rule leaves as it is.
func (c *console) mutedUntil(r *http.Request, id string) (time.Time, error) {
	found, _, err := c.Service.Alert(r.Context(), identity.FromContext(r.Context()), "", id)
	if err != nil {
		return time.Time{}, err
	}
	return found.MutedUntil, nil
}

// changedAlert does something to an alert, and shows a page.
func (c *console) changedAlert(w http.ResponseWriter, r *http.Request, flash, to string, change func(request groups.Request, id string) error) error {
	request, err := requestOf(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "alert")
	if err := change(request, id); err != nil {
		return groupinghttp.AlertProblem(err, "", id)
	}
	return alertDone(w, r, flash, to)
}

func (c *console) muteAlert(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	until, flash := time.Time{}, "alert-unmuted"
	if span, err := strconv.Atoi(r.PostForm.Get("for")); err == nil && span > 0 && span <= 90*24*3600 {
		until, flash = c.Clock().UTC().Add(time.Duration(span)*time.Second).Truncate(time.Second), "alert-muted"
	}
	return c.changedAlert(w, r, flash, alertsPath+"/"+chi.URLParam(r, "alert"), func(request groups.Request, id string) error {
		_, err := c.Service.MuteAlert(r.Context(), request, id, until)
		return err
	})
}

func (c *console) testAlert(w http.ResponseWriter, r *http.Request) error {
	return c.changedAlert(w, r, "alert-tested", alertsPath+"/"+chi.URLParam(r, "alert"), func(request groups.Request, id string) error {
		_, err := c.Service.TestAlert(r.Context(), request, "", id)
		return err
	})
}

func (c *console) deleteAlert(w http.ResponseWriter, r *http.Request) error {
	return c.changedAlert(w, r, "alert-deleted", alertsPath, func(request groups.Request, id string) error {
		version, err := strconv.ParseInt(r.PostForm.Get("version"), 10, 64)
		if err != nil || version < 1 {
			return postgres.ErrAlertChanged
		}
		_, err = c.Service.DeleteAlert(r.Context(), request, "", id, version)
		return err
	})
}
