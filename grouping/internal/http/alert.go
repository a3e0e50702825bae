package http

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

type alertRoutes struct{ alerts *groups.Alerts }

func alertOperations(a *access, alerts *groups.Alerts) []openapi.Operation {
	l := alertRoutes{alerts}
	read := map[int]string{http.StatusNotFound: "There is no such project, or no such alert of it, in the key's organization"}
	changed := map[int]string{
		http.StatusNotFound:  read[http.StatusNotFound],
		http.StatusConflict:  "conflict: it was changed since that version, or tested within a minute; limit_reached: the project has as many alerts as it may",
		http.StatusForbidden: "forbidden: the key does not read the whole organization (access full)",
	}
	const path = "/v1/projects/{project}/error-alerts"
	return []openapi.Operation{
		{
			Route: "GET " + path, Handle: a.reads(l.list), ID: "listErrorAlerts", Summary: "The alerts on a project's errors, by name",
			Query: struct{}{}, Answer: openapi.Answer{Type: alertListBody{}, Description: "All of them"}, Problems: read,
		},
		{
			Route: "POST " + path, Handle: a.changes(l.create), ID: "createErrorAlert",
			Summary: "Notify webhooks and members of new, returning or many errors of a project",
			Description: "It holds for errors that are accepted from now on. The webhooks that it names get it, or those that ask for error_alert.fired; " +
				"reaches says who that is as of now.",
			Headers: idempotent{}, Body: openapi.Body{Type: newAlertBody{}},
			Answer: openapi.Answer{Status: http.StatusCreated, Type: alertBody{}, Description: "The alert"}, Problems: changed,
		},
		{
			Route: "GET " + path + "/{alert}", Handle: a.reads(l.get), ID: "getErrorAlert", Summary: "An alert on a project's errors",
			Query: struct{}{}, Answer: openapi.Answer{Type: alertBody{}, Description: "The alert"}, Problems: read,
		},
		{
			Route: "PUT " + path + "/{alert}", Handle: a.changes(l.update), ID: "updateErrorAlert", Summary: "Change an alert on a project's errors, or mute it",
			Headers: idempotent{}, Body: openapi.Body{Type: changedAlertBody{}}, Answer: openapi.Answer{Type: alertBody{}, Description: "The alert"}, Problems: changed,
		},
		{
			Route: "DELETE " + path + "/{alert}", Handle: a.changes(l.delete), ID: "deleteErrorAlert",
			Summary: "Delete an alert on a project's errors. What waits is not sent",
			Headers: idempotent{}, Query: versionQuery{}, Answer: openapi.Answer{Type: alertBody{}, Description: "The alert, as it was"}, Problems: changed,
		},
		{
			Route: "POST " + path + "/{alert}/test", Handle: a.changes(l.test), ID: "testErrorAlert",
			Summary: "Send a message that is marked as a test to all recipients. Once a minute",
			Headers: idempotent{}, Answer: openapi.Answer{Status: http.StatusAccepted, Type: alertBody{}, Description: "The alert"}, Problems: changed,
		},
		{
			Route: "GET " + path + "/{alert}/log", Handle: a.reads(l.log), ID: "listErrorAlertLog", Summary: "What an alert has sent, and what it held back and why",
			Query: struct{}{}, Answer: openapi.Answer{Type: alertLogBody{}, Description: "The newest 200 lines, the newest first"}, Problems: read,
		},
	}
}

type versionQuery struct {
	Version int64 `query:"version" minimum:"1" description:"Refuse with conflict unless the alert is at this version"`
}

type hoursBody struct {
	Days     []string `json:"days" enum:"mon,tue,wed,thu,fri,sat,sun" description:"On which the hours begin; empty: on each"`
	From     string   `json:"from" required:"true" description:"Time of the day, such as 08:00"`
	To       string   `json:"to" required:"true" description:"When they end; not after from: on the next day"`
	TimeZone string   `json:"time_zone" description:"An IANA name, such as Europe/Berlin; empty: UTC"`
}

type newAlertBody struct {
	Name string `json:"name" required:"true" minLength:"1" maxLength:"80"`
	alertTriggersBody
	alertFilterBody
	alertDeliveryBody
}

type alertTriggersBody struct {
	Triggers []grouping.Trigger `json:"triggers" required:"true" enum:"new,regressed,unignored,spiking,many,users" description:"When to notify. new: an error has happened for the new_from-th time in all. regressed: it came after it was resolved or archived. unignored: its time or count of being ignored is over. spiking: it happens far more often than before. many: count came within per; users: so many users were affected within users_per; both again when there have been fewer in between"`
	NewFrom  int64              `json:"new_from" minimum:"1" maximum:"1000000" default:"2" description:"The number of the error of a group by which it counts as new"`
	Count    int64              `json:"count,omitempty" minimum:"1" maximum:"1000000000" description:"With many"`
	Per      string             `json:"per,omitempty" enum:"minute,hour,day,week" description:"With many: counted by acceptance, to a tenth of it"`
	Users    int64              `json:"users,omitempty" minimum:"1" maximum:"1000000000" description:"With users: of one group, as the project's error settings find them. Exact to 512; more are estimated, with a standard error of 4 to 6 %"`
	UsersPer string             `json:"users_per,omitempty" enum:"minute,hour,day,week" description:"With users: counted by acceptance, to a tenth of it"`
}

type alertFilterBody struct {
	Levels       []string `json:"levels" enum:"debug,info,warn,error,fatal" description:"Only errors with entries of one of these levels; empty: all"`
	Environments []string `json:"environments" maxItems:"20" description:"Only errors of one of these environments; empty: all"`
	Words        string   `json:"q" maxLength:"256" description:"Only errors with all of this, in the language of the list: words in title, type or culprit, whatever their case, type:, release:, assigned: (a member, a label or nobody), and without the triggers many and users also service: and host:. environment: and level: are moved to environments and levels; is: is refused, as alerts are of unresolved errors. Quotes keep words together"`
}

type alertDeliveryBody struct {
	Hours      *hoursBody `json:"hours" nullable:"true" description:"When messages are sent. What comes outside is sent in one message when they begin. null: always"`
	Gap        int64      `json:"gap_seconds" minimum:"60" maximum:"86400" default:"300" description:"Least time between two messages. What comes within is gathered into one, which names up to 10 groups"`
	Roles      []string   `json:"mail_roles" enum:"owner,admin,developer,viewer" description:"Members of these roles get mail"`
	Members    []string   `json:"mail_members" maxItems:"20" description:"Ids of members who get mail as well; with roles at most 20"`
	Webhooks   []string   `json:"webhooks" maxItems:"20" description:"Ids of the webhooks that get it, whatever events they ask for, and no others do. Empty: all that ask for error_alert.fired. One that is deleted later stays named, and nothing is sent in its place"`
	MutedUntil *time.Time `json:"muted_until" nullable:"true" description:"What is accepted until then is not sent, within 90 days; null: it is not muted"`
}

type changedAlertBody struct {
	newAlertBody
	Version int64 `json:"version" required:"true" minimum:"1" description:"That was read: else conflict"`
}

type alertBody struct {
	ID      string `json:"id" maxLength:"64"`
	Project string `json:"project" maxLength:"64"`
	newAlertBody
	Reaches   reachedBody `json:"reaches"`
	Waiting   int64       `json:"waiting" description:"Groups that wait to be sent"`
	NextAt    *time.Time  `json:"next_at" nullable:"true" description:"When they are; null: nothing waits"`
	SentAt    *time.Time  `json:"sent_at" nullable:"true" description:"The last message; null: none was sent"`
	Version   int64       `json:"version"`
	UpdatedBy string      `json:"updated_by"`
	UpdatedAt time.Time   `json:"updated_at"`
}

type reachedBody struct {
	Webhooks []string `json:"webhooks" description:"Ids of those that are notified and switched on, as of now"`
	Members  int64    `json:"members" description:"How many get mail as of now, unless they chose to get none. 0, and no webhooks: it reaches nobody"`
}

type alertListBody struct {
	Items []alertBody `json:"items"`
	httpapi.OnePage
}

type alertLogBody struct {
	Items []alertLineBody `json:"items" maxItems:"200"`
	httpapi.OnePage
}

type alertLineBody struct {
	Outcome grouping.Outcome `json:"outcome" enum:"sent,tested,muted,below,gathered,after_hours,over_limit,stale,decided" description:"sent and tested; else why it was held back. gathered, after_hours and over_limit (60 messages an hour of the organization): it waits. below: fewer errors than new_from. stale: accepted more than a day ago. decided: somebody resolved or ignored it meanwhile"`
	Groups  int64            `json:"groups" description:"How many groups; of what is held back as it comes, one as often as it came"`
	Group   *string          `json:"group" nullable:"true" description:"The first of them; null: it is not known any more"`
	FirstAt time.Time        `json:"first_at" description:"Of the first; what is held back for the same reason in a row is one line"`
	At      time.Time        `json:"at" description:"Of the last"`
}

// days are names of the days of the week, in their order in Go.
var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// rule reads a rule.
func (b *newAlertBody) rule(who identity.Principal) (rule grouping.AlertRule, err error) {
	rule = grouping.AlertRule{
		Name: b.Name, Triggers: b.Triggers, NewFrom: b.NewFrom, Count: b.Count, Environments: b.Environments,
		Users: b.Users, Gap: time.Duration(min(max(b.Gap, 0), 1<<30)) * time.Second, Roles: b.Roles, Members: b.Members, Webhooks: b.Webhooks,
	}
	if rule.Per, err = spanNamed("per", b.Per); err == nil {
		rule.UsersPer, err = spanNamed("users_per", b.UsersPer)
	}
	if err != nil {
		return rule, err
	}
	for _, word := range b.Levels {
		level, known := grouping.ParseSeverity(word)
		if !known {
			return rule, grouping.Invalid{Field: "levels", Detail: fmt.Sprintf("%q is not a level.", word), Fix: "Use debug, info, warn, error or fatal."}
		}
		rule.Severities |= level
	}
	if err := rule.Ask(b.Words, who.Member); err != nil {
		return rule, err
	}
	if b.MutedUntil != nil {
		rule.MutedUntil = b.MutedUntil.UTC().Truncate(time.Microsecond)
	}
	if b.Hours != nil {
		rule.Hours, err = b.Hours.hours()
	}
	return rule, err
}

// spanNamed is a span by its name; none if it has none.
func spanNamed(field, name string) (time.Duration, error) {
	span, known := grouping.Spans[name]
	if !known && name != "" {
		return 0, grouping.Invalid{Field: field, Detail: fmt.Sprintf("The span is %q.", name), Fix: "Use minute, hour, day or week."}
	}
	return span, nil
}

func (b *hoursBody) hours() (h grouping.Hours, err error) {
	h.Zone = b.TimeZone
	for _, name := range b.Days {
		h.Days = append(h.Days, time.Weekday(slices.Index(days, name))) // -1 is none
	}
	if h.From, err = groups.ParseClock("hours/from", b.From); err == nil {
		h.To, err = groups.ParseClock("hours/to", b.To)
	}
	return h, err
}

func (l alertRoutes) show(a *postgres.Alert) alertBody {
	reached := l.alerts.Reaches(a.Organization, &a.AlertRule)
	body := alertBody{
		ID: a.ID, Project: a.Project, Reaches: reachedBody{[]string{}, int64(reached.Members)}, Waiting: a.Groups(),
		NextAt: httpapi.TimeOrNull(a.Due), SentAt: httpapi.TimeOrNull(a.SentAt), Version: a.Version,
		UpdatedBy: a.UpdatedBy, UpdatedAt: a.UpdatedAt.UTC(),
		newAlertBody: newAlertBody{
			a.Name, alertTriggersBody{a.Triggers, a.NewFrom, a.AlertRule.Count, groups.SpanName(a.Per), a.Users, groups.SpanName(a.UsersPer)},
			alertFilterBody{a.Severities.Names(), append([]string{}, a.Environments...), strings.Join(a.Words, " ")},
			alertDeliveryBody{nil, int64(a.Gap / time.Second), append([]string{}, a.Roles...), append([]string{}, a.Members...),
				append([]string{}, a.Webhooks...), httpapi.TimeOrNull(a.MutedUntil)},
		},
	}
	for _, w := range reached.Webhooks {
		body.Reaches.Webhooks = append(body.Reaches.Webhooks, w.ID)
	}
	if !a.Hours.IsZero() {
		body.Hours = &hoursBody{Days: []string{}, From: groups.Clock(a.Hours.From), To: groups.Clock(a.Hours.To), TimeZone: a.Hours.Zone}
		for _, day := range a.Hours.Days {
			body.Hours.Days = append(body.Hours.Days, days[day])
		}
	}
	return body
}

func (l alertRoutes) list(c *call) (any, error) {
	found, err := l.alerts.List(c.ctx(), c.who, c.project)
	return alertListBody{Items: itemsOf(found, l.show)}, err
}

func (l alertRoutes) get(c *call) (any, error) {
	return as(l.show)(l.alerts.Find(c.ctx(), c.who, c.project, c.param("alert")))
}

func (l alertRoutes) log(c *call) (any, error) {
	found, err := l.alerts.Log(c.ctx(), c.who, c.project, c.param("alert"))
	return alertLogBody{Items: itemsOf(found, func(line postgres.LoggedLine) alertLineBody {
		return alertLineBody{line.Outcome, line.Groups, httpapi.OrNull(line.Group), line.FirstAt.UTC(), line.At.UTC()}
	})}, err
}

// defaultAlert is what a rule has unless the body says otherwise.
func defaultAlert() newAlertBody {
	rule := grouping.DefaultAlertRule()
	return newAlertBody{alertTriggersBody: alertTriggersBody{NewFrom: rule.NewFrom}, alertDeliveryBody: alertDeliveryBody{Gap: int64(rule.Gap / time.Second)}}
}

func (l alertRoutes) create(c *call) (any, error) {
	body := defaultAlert()
	if err := c.read(&body); err != nil {
		return nil, err
	}
	rule, err := body.rule(c.who)
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return as(l.show)(l.alerts.Create(c.ctx(), c.request, c.project, rule))
}

func (l alertRoutes) update(c *call) (any, error) {
	body := changedAlertBody{newAlertBody: defaultAlert()}
	if err := c.read(&body); err != nil {
		return nil, err
	}
	if body.Version < 1 {
		return nil, httpapi.Invalid("/version", httpapi.CodeInvalidRequest, fmt.Sprintf("version is %d.", body.Version), "Send the version that you have read.")
	}
	rule, err := body.rule(c.who)
	if err != nil {
		return nil, err
	}
	return as(l.show)(l.alerts.Update(c.ctx(), c.request, c.project, c.param("alert"), rule, body.Version))
}

func (l alertRoutes) delete(c *call) (any, error) {
	var version int64
	if text := c.r.URL.Query().Get("version"); text != "" {
		var err error
		if version, err = strconv.ParseInt(text, 10, 64); err != nil || version < 1 {
			return nil, httpapi.Invalid("?version", httpapi.CodeInvalidRequest, fmt.Sprintf("version is %q.", text), "Use the version that you have read.")
		}
	}
	return as(l.show)(l.alerts.Delete(c.ctx(), c.request, c.project, c.param("alert"), version))
}

func (l alertRoutes) test(c *call) (any, error) {
	c.status = http.StatusAccepted
	return as(l.show)(l.alerts.Test(c.ctx(), c.request, c.project, c.param("alert")))
}
