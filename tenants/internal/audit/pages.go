package audit

import (
	"embed"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

// csvPath is the address of the file of all that matches.
const csvPath = pages.AuditPath + ".csv"

// dateForm is the form of a day in forms.
const dateForm = "2006-01-02"

//go:embed templates/*.html
var templates embed.FS

// Pages are the pages of the audit.
type Pages struct {
	pages.Set
	service *Service
}

// NewPages returns the pages of a service.
func NewPages(kit *pages.Kit, service *Service) Pages { return Pages{kit.Of(templates), service} }

// Mount adds the pages to the settings.
func (p Pages) Mount(settings chi.Router) {
	settings.Get(pages.AuditPath, p.For(tenants.AuditRead, p.list))
	settings.Get(csvPath, p.For(tenants.AuditRead, p.download))
}

type listPage struct {
	pages.Settings
	Filters  []ui.Field
	Filtered bool
	Lines    []shownLine
	CSV      string // address of the file
	Pager    ui.Pager
}

// shownLine is a readable line of the audit.
type shownLine struct {
	tenants.AuditEvent
	Who     string
	What    string
	Changes []tenants.Difference
	IDs     []tenants.Difference // those of what has a long id, which belong to the details
}

// filterForm is the filters as the form has them.
type filterForm struct {
	filter   tenants.AuditFilter
	from, to string
	fault    error
}

// formOf reads the filters. Days are in UTC, and the last one is included.
func formOf(r *http.Request) filterForm {
	given := r.URL.Query()
	form := filterForm{from: given.Get("from"), to: given.Get("to"), filter: tenants.AuditFilter{
		Organization: pages.CallerOf(r).Organization, Actor: given.Get("actor"), Action: given.Get("action"),
		Target: strings.TrimSpace(given.Get("target")),
	}}
	var faults tenants.Invalid
	form.filter.From = day("from", form.from, 0, &faults)
	form.filter.To = day("to", form.to, 1, &faults)
	form.fault = form.filter.Check()
	if len(faults) > 0 {
		form.fault = faults
	}
	return form
}

// day is the beginning of the day that is later
// days after the given; zero if none is given.
func day(field, text string, later int, faults *tenants.Invalid) time.Time {
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(dateForm, text)
	if err != nil {
		*faults = append(*faults, tenants.Fault{Field: field, Detail: "This is no day.", Fix: "Use the form 2026-11-20."})
		return time.Time{}
	}
	return at.AddDate(0, 0, later)
}

func (p Pages) list(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	form := formOf(r)
	page := listPage{Settings: shown, CSV: withQuery(csvPath, r.URL.Query()), Filtered: r.URL.RawQuery != ""}
	if page.Filters, err = p.fields(r, form); err != nil {
		return err
	}
	status := http.StatusUnprocessableEntity
	if form.fault == nil {
		status = http.StatusOK
		if err := p.find(r, form.filter, &page); err != nil {
			return err
		}
	}
	p.Write(w, r, status, "audit", ui.View{Title: "Audit log", Tabs: pages.Tabs(r, pages.AuditPath), Data: page})
	return nil
}

// find finds the lines of the page.
func (p Pages) find(r *http.Request, filter tenants.AuditFilter, page *listPage) error {
	var before int64
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &before); err != nil {
			return err
		}
	}
	found, err := p.service.store.Events(r.Context(), pg.Organization(filter.Organization), filter, before, pages.PageSize+1)
	if err != nil {
		return err
	}
	list := httpapi.NewList(r, found, pages.PageSize, func(last tenants.AuditEvent) any { return last.Sequence })
	page.Pager = ui.NewPager(r, list.NextCursor)
	for _, event := range list.Items {
		line, err := readable(event)
		if err != nil {
			return err
		}
		page.Lines = append(page.Lines, line)
	}
	return nil
}

func readable(event tenants.AuditEvent) (line shownLine, err error) {
	before, err := tenants.ParseFields(event.Before)
	if err != nil {
		return line, err
	}
	after, err := tenants.ParseFields(event.After)
	line = shownLine{
		AuditEvent: event, What: actionText(event.Action), Who: actorText(Actor{ID: event.Origin.Actor, Kind: event.Origin.Kind, Name: event.ActorName}),
	}
	for _, change := range before.Differences(after) {
		into := &line.Changes
		if madeID.MatchString(change.Before + change.After) {
			into = &line.IDs
		}
		*into = append(*into, tenants.Difference{
			Field: strings.ReplaceAll(change.Field, "_", " "), Before: readableTime(change.Before), After: readableTime(change.After),
		})
	}
	return line, err
}

// madeID is an id such as mem_01a22734a4d57d9b90fc47f1c942c60d, or a hash.
var madeID = regexp.MustCompile(`^([a-z]{3}_[0-9a-z]{20,}|[0-9a-f]{64})$`)

// readableTime formats a value that is a time. The CSV has every digit.
func readableTime(value string) string {
	if at, err := time.Parse(time.RFC3339Nano, value); err == nil {
		return ui.Instant(at)
	}
	return value
}

// actionText is an action as text: "API key revoked" for "api_key.revoked".
func actionText(action string) string {
	words := strings.NewReplacer("sign_in", "sign-in", "_", " ", ".", " ").Replace(action)
	if rest, is := strings.CutPrefix(words, "api key"); is {
		return "API key" + rest
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// actorText is an actor as text.
func actorText(actor Actor) string {
	switch {
	case actor.Name != "":
		return actor.Name
	case actor.Kind == tenants.ConfigurationActor && actor.ID == "command":
		return "Somebody at the server"
	case actor.Kind == tenants.ConfigurationActor:
		return "The configuration"
	case actor.Kind == tenants.SystemActor:
		return "Weir itself (" + actor.ID + ")"
	}
	return actor.ID
}

// fields are the fields of the form, with what the audit has as choices.
func (p Pages) fields(r *http.Request, form filterForm) ([]ui.Field, error) {
	organization := form.filter.Organization
	actions, err := p.service.store.Actions(r.Context(), pg.Organization(organization), pg.Organization(organization))
	if err != nil {
		return nil, err
	}
	actors, err := p.service.store.Actors(r.Context(), pg.Organization(organization), pg.Organization(organization))
	if err != nil {
		return nil, err
	}
	return []ui.Field{
		{Name: "actor", Label: "Who", Choices: ui.NewChoices(form.filter.Actor, actorChoices(actors)...), Fault: pages.FaultOf(form.fault, "actor")},
		{Name: "action", Label: "What", Choices: ui.NewChoices(form.filter.Action, actionChoices(actions)...), Fault: pages.FaultOf(form.fault, "action")},
		{Name: "target", Label: "Id of what changed", Value: form.filter.Target, MaxLength: 64, Autocomplete: "off", Fault: pages.FaultOf(form.fault, "target")},
		{Name: "from", Label: "From (UTC)", Type: "date", Value: form.from, Fault: pages.FaultOf(form.fault, "from")},
		{Name: "to", Label: "Up to and including", Type: "date", Value: form.to, Fault: pages.FaultOf(form.fault, "to")},
	}, nil
}

func actorChoices(actors []Actor) [][2]string {
	choices := [][2]string{{"", "Everybody"}}
	for _, actor := range actors {
		choices = append(choices, [2]string{actor.ID, actorText(actor)})
	}
	return choices
}

func actionChoices(actions []string) [][2]string {
	choices := [][2]string{{"", "Everything"}}
	for _, action := range actions {
		choices = append(choices, [2]string{action, actionText(action)})
	}
	return choices
}

// download serves all that matches as a file.
func (p Pages) download(w http.ResponseWriter, r *http.Request) error {
	form := formOf(r)
	if form.fault != nil {
		return httpapi.NewProblem(http.StatusBadRequest, httpapi.CodeInvalidRequest, form.fault.Error()+" Go back and change the filters.")
	}
	next := func(before int64) ([]tenants.AuditEvent, error) {
		return p.service.store.Events(r.Context(), pg.Organization(form.filter.Organization), form.filter, before, csvPage)
	}
	first, err := next(0)
	if err != nil {
		return err
	}
	serveCSV(w, form.filter.Organization, first, next)
	return nil
}

// withQuery is an address with a query's filters.
func withQuery(path string, query url.Values) string {
	query.Del("cursor")
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
