package console

import (
	"cmp"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// An alertForm is the form of a rule.
type alertForm struct {
	Begin, End []ui.Field
	Triggers   ui.Checks
	Levels     ui.Checks
	Days       ui.Checks
	Mail       ui.Checks
	Webhooks   ui.Checks
	Asking     string // hosts of the webhooks that ask for alerts; empty: none does
	Project    string // empty: any
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

func (p *alertPages) form(who identity.Principal, project string, rule *grouping.AlertRule, version int64, fault error) (form alertForm, general string) {
	form.Project, form.Version, form.Key = project, version, rand.Text()
	if version == 0 {
		projects := ui.Field{Name: "project", Label: "Project"}
		for _, p := range p.directory.Projects(who.Organization) {
			projects.Choices = append(projects.Choices, ui.Choice{Value: p.Project, Text: p.Name, Selected: p.Project == project})
		}
		form.Begin = append(form.Begin, projects)
	}
	many, count, per := rule.Has(grouping.OnMany), rule.Count, groups.SpanName(rule.Per)
	if !many {
		count, per = 100, "hour"
	}
	users, usersPer := rule.Users, groups.SpanName(rule.UsersPer)
	if !rule.Has(grouping.OnUsers) {
		users, usersPer = 10, "hour"
	}
	number := func(name, label, hint string, value int64) ui.Field {
		return ui.Field{Name: name, Label: label, Type: "number", Value: strconv.FormatInt(value, 10), Hint: hint, Required: true}
	}
	form.Begin = append(form.Begin, ui.Field{Name: "name", Label: "Name", Value: rule.Name, MaxLength: grouping.MaxAlertName, Required: true, Autocomplete: "off"})
	form.Triggers = checks("triggers", "Notify of", triggerTexts, func(value string) bool { return rule.Has(grouping.Trigger(value)) })
	hours := [2]string{groups.Clock(rule.Hours.From), groups.Clock(rule.Hours.To)}
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
		{Name: "q", Label: "Search", Value: strings.Join(p.byName(who.Organization, rule).Words, " "), Optional: true,
			Hint: "As in the list: words of title, type or culprit, type:KeyError release:1.2 assigned:me. Also service:pay host:web-1, unless it counts."},
		{Name: "gap_seconds", Label: "At most one message in", Choices: ui.NewChoices(seconds(rule.Gap), gaps...)},
		{Name: "hours/from", Label: "Send from", Type: "time", Value: hours[0], Optional: true, Hint: "What comes outside waits. Empty: at any time."},
		{Name: "hours/to", Label: "Send to", Type: "time", Value: hours[1], Optional: true},
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
	form.Webhooks = p.webhookChecks(who.Organization, rule.Webhooks)
	var asking []string
	for _, w := range p.alerts.Reaches(who.Organization, &grouping.AlertRule{}).Webhooks {
		asking = append(asking, w.Host)
	}
	form.Asking = strings.Join(asking, ", ")
	form.Mail = ui.MailChecks(p.directory, who, identity.ReadErrors, rule.Roles, rule.Members)
	return form, general
}

// byName is a rule that names members as people do, where a name says who it is.
func (p *alertPages) byName(organization string, rule *grouping.AlertRule) grouping.AlertRule {
	return rule.Renamed(func(id string) string {
		var members []grouping.Member
		for _, m := range p.directory.MembersThatRead(organization, identity.ReadErrors) {
			members = append(members, grouping.Member{ID: m.ID, Name: m.Name})
		}
		at := slices.IndexFunc(members, func(m grouping.Member) bool { return m.ID == id })
		if at < 0 || grouping.AssigneeNamed(members[at].Name, members).ID != id || members[at].Name == grouping.Me || members[at].Name == grouping.Nobody {
			return id
		}
		return members[at].Name
	})
}

// webhookChecks are the webhooks to choose from, and those that were chosen and are gone.
func (p *alertPages) webhookChecks(organization string, chosen []string) ui.Checks {
	pairs := webhookPairs(p.directory.Webhooks(organization))
	for _, id := range chosen {
		if _, known := p.directory.Webhook(organization, id); !known {
			pairs = append(pairs, [2]string{id, id + " (unknown or deleted)"})
		}
	}
	return checks("webhooks", "Webhooks", pairs, func(id string) bool { return slices.Contains(chosen, id) })
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
	rule = grouping.AlertRule{Name: field("name"), NewFrom: number("new_from"),
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
	asked := rule.Ask(field("q"), identity.FromContext(r.Context()).Member)
	if asked != nil {
		rule.Words = []string{field("q")}
	}
	rule.Webhooks = r.PostForm["webhooks"]
	rule.Roles, rule.Members = ui.MailIn(r)
	rule.Hours, err = hoursIn(r)
	return rule, cmp.Or(asked, err)
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
	if h.From, err = groups.ParseClock("hours/from", from); err == nil {
		h.To, err = groups.ParseClock("hours/to", to)
	}
	return h, err
}
