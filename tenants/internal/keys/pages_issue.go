package keys

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
)

// issuePages issue keys, new ones and those that replace others.
type issuePages struct {
	pages.Set
	service *Service
}

func (p issuePages) mount(settings chi.Router) {
	const path = pages.APIKeysPath
	settings.Get(path+"/new", p.Confirmed(tenants.APIKeysWrite, p.showNew))
	settings.Post(path, p.Confirmed(tenants.APIKeysWrite, p.create))
	settings.Get(path+"/{id}/rotate", p.Confirmed(tenants.APIKeysWrite, p.showRotate))
	settings.Post(path+"/{id}/rotate", p.Confirmed(tenants.APIKeysWrite, p.rotate))
}

type createdKeyPage struct {
	Key     shownKey
	Old     *shownKey // the replaced key; nil: none
	Full    ui.Code   // the key itself, shown only on this page
	Try     ui.Variants
	Awaited ui.Awaited
}

// create issues a key and shows it in the response, which
// browsers do not store. A form sent again gets no second key.
func (p issuePages) create(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	form := readNewKeyForm(r)
	wanted, fault := form.wanted(p.Clock())
	if err := pages.Need(r, tenants.IssuePermission(wanted.Environment)); err != nil {
		return err
	}
	if fault != nil {
		return p.writeNew(w, r, http.StatusUnprocessableEntity, form, fault)
	}
	key, secret, err := p.service.Issue(r.Context(), p.RequestOf(r), wanted)
	switch {
	case pages.IsInvalid(err):
		return p.writeNew(w, r, http.StatusUnprocessableEntity, form, err)
	case errors.Is(err, tenants.ErrShownOnce):
		return httpapi.NewProblem(http.StatusConflict, "secret_shown_once",
			"This key was created already, and was shown once. If you did not save it, revoke it and create another.")
	case err != nil:
		return pages.ProblemOf(err, "project", wanted.Project)
	}
	return p.writeCreated(w, r, key, nil, secret)
}

// writeCreated shows a new key, and the replaced one if any.
func (p issuePages) writeCreated(w http.ResponseWriter, r *http.Request, key tenants.APIKey, old *shownKey, secret tenants.Secret) error {
	listed, err := p.service.store.Key(r.Context(), pg.Organization(key.Organization), key.ID)
	if err != nil {
		return err
	}
	ways := snippets
	if len(key.Origins) > 0 {
		ways = ofPages
	}
	p.Write(w, r, http.StatusCreated, "api-key-created", ui.View{
		Title: "Save your new API key now", Tabs: pages.Tabs(r, pages.APIKeysPath),
		Data: createdKeyPage{
			Key: showKey(listed, p.Clock()), Old: old, Try: firstSteps(ways, p.Origin, p.CAFile, secret.Reveal(), p.Clock()), Awaited: firstEvent(listed),
			Full: ui.Code{ID: "secret", Label: "Your key", Text: secret.Reveal(), Copy: "Copy key", Secret: true},
		},
	})
	return nil
}

// When a new key ends: after so many days, never, or on a date.
const (
	endsNever  = "never"
	endsOn     = "date"
	endDefault = "90"
)

// ends are the choices of a key's end.
var ends = [][2]string{
	{"30", "In 30 days"}, {"90", "In 90 days"}, {"365", "In 365 days"}, {endsNever, "Never"}, {endsOn, "On the date below"},
}

// newKeyForm is the filled-in form of a new key.
type newKeyForm struct {
	settings             settingsForm
	project, environment string
	ends, on             string // one of ends; a date such as 2027-01-31
}

func readNewKeyForm(r *http.Request) newKeyForm {
	return newKeyForm{
		settings: readSettings(r), project: r.PostForm.Get("project"), environment: r.PostForm.Get("environment"),
		ends: r.PostForm.Get("ends"), on: r.PostForm.Get("ends_on"),
	}
}

// wanted parses the form; Invalid if that fails.
func (f newKeyForm) wanted(now time.Time) (tenants.IssueAPIKey, error) {
	wanted := tenants.IssueAPIKey{Project: f.project, Environment: tenants.Environment(f.environment)}
	var faults tenants.Invalid
	var fault *tenants.Fault
	if wanted.ExpiresAt, fault = f.end(now); fault != nil {
		faults = append(faults, *fault)
	}
	if fault := f.settings.addTo(&wanted); fault != nil {
		faults = append(faults, *fault)
	}
	if len(faults) > 0 {
		return wanted, faults
	}
	return wanted, nil
}

// end is when the key ends; its date is included.
func (f newKeyForm) end(now time.Time) (time.Time, *tenants.Fault) {
	switch f.ends {
	case endsNever:
		return time.Time{}, nil
	case endsOn:
		if f.on == "" {
			return time.Time{}, &tenants.Fault{Field: "ends_on", Detail: "The date is missing.", Fix: "Choose one, or another end above."}
		}
		date, err := time.Parse(time.DateOnly, f.on)
		if err != nil {
			return time.Time{}, &tenants.Fault{Field: "ends_on", Detail: fmt.Sprintf("The date is %q.", f.on), Fix: "Use a date such as 2027-01-31."}
		}
		return date.AddDate(0, 0, 1), nil
	}
	days, err := strconv.Atoi(f.ends)
	if err != nil || days < 1 || days > 365 {
		return time.Time{}, &tenants.Fault{Field: "ends", Detail: fmt.Sprintf("The end is %q.", f.ends), Fix: "Choose one of the list."}
	}
	return now.UTC().AddDate(0, 0, days).Truncate(time.Microsecond), nil
}

type newKeyPage struct {
	pages.Settings
	Projects int
	Fields   []ui.Field
}

func (p issuePages) showNew(w http.ResponseWriter, r *http.Request) error {
	form := newKeyForm{
		settings: settingsForm{access: string(tenants.WriteAccess)},
		project:  r.URL.Query().Get("project"), environment: string(tenants.Dev), ends: endDefault,
	}
	return p.writeNew(w, r, http.StatusOK, form, nil)
}

func (p issuePages) writeNew(w http.ResponseWriter, r *http.Request, status int, form newKeyForm, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	projects, err := p.service.projects.List(r.Context(), caller, caller.Organization, query.Position{}, pages.MaxChoices)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "api-key-new", ui.View{
		Title: "Create New API Key", Tabs: pages.Tabs(r, pages.APIKeysPath),
		Data: newKeyPage{shown, len(projects), form.fields(shown.Role, projects, fault)},
	})
	return nil
}

func (f newKeyForm) fields(role tenants.Role, projects []tenants.Project, fault error) []ui.Field {
	var choices [][2]string
	for _, project := range projects {
		choices = append(choices, [2]string{project.ID, project.Name})
	}
	return slices.Insert(f.settings.fields(fault), 1, []ui.Field{
		{Name: "project", Label: "Project", Fault: pages.FaultOf(fault, "project"), Required: true, Choices: ui.NewChoices(f.project, choices...)},
		{Name: "environment", Label: "Environment", Fault: pages.FaultOf(fault, "environment"), Required: true,
			Choices: ui.NewChoices(f.environment, environmentsFor(role)...)},
		{Name: "ends", Label: "Expires", Fault: pages.FaultOf(fault, "ends"), Choices: ui.NewChoices(f.ends, ends...)},
		{Name: "ends_on", Label: "Expires on", Type: "date", Value: f.on, Optional: true,
			Fault: strings.TrimSpace(pages.FaultOf(fault, "ends_on") + pages.FaultOf(fault, "expires_at")),
			Hint:  "Only where the key expires on a date. It works until the end of that day, UTC."},
	}...)
}

// environmentsFor are the environments for which a role may issue keys.
func environmentsFor(role tenants.Role) (choices [][2]string) {
	for _, choice := range [][2]string{{string(tenants.Prod), "Prod"}, {string(tenants.Staging), "Staging"}, {string(tenants.Dev), "Dev"}} {
		if role.MayIssueFor(tenants.Environment(choice[0])) {
			choices = append(choices, choice)
		}
	}
	return choices
}

// overlaps are the choices of an overlap, in seconds.
var overlaps = [][2]string{
	{"0", "Not at all: it ends at once"}, {"3600", "1 hour"}, {"86400", "24 hours"}, {"604800", "7 days"},
}

const overlapDefault = "86400"

type rotateKeyPage struct {
	pages.Settings
	Key     shownKey
	Overlap ui.Field
}

func (p issuePages) showRotate(w http.ResponseWriter, r *http.Request) error {
	return p.writeRotate(w, r, http.StatusOK, overlapDefault, nil)
}

func (p issuePages) writeRotate(w http.ResponseWriter, r *http.Request, status int, overlap string, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	key, err := keyToChange(r, p.service)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "api-key-rotate", ui.View{
		Title: "Rotate an API key", Tabs: pages.Tabs(r, pages.APIKeysPath),
		Data: rotateKeyPage{Settings: shown, Key: showKey(key, p.Clock()), Overlap: ui.Field{
			Name: "overlap_seconds", Label: "The old key goes on for", Fault: pages.FaultOf(fault, "overlap_seconds"),
			Choices: ui.NewChoices(overlap, overlaps...), Hint: "So that its holders can change over. It never goes on beyond its own end.",
		}},
	})
	return nil
}

// rotate shows the new key in the response, as create does.
func (p issuePages) rotate(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	key, err := keyToChange(r, p.service)
	if err != nil {
		return err
	}
	text := r.PostForm.Get("overlap_seconds")
	seconds, fault := strconv.ParseInt(text, 10, 32)
	if fault != nil {
		return p.writeRotate(w, r, http.StatusUnprocessableEntity, overlapDefault, tenants.Invalid{{
			Field: "overlap_seconds", Detail: fmt.Sprintf("The time is %q.", text), Fix: "Choose one of the list."}})
	}
	rotation, err := p.service.Rotate(r.Context(), p.RequestOf(r), key.ID, time.Duration(seconds)*time.Second)
	if pages.IsInvalid(err) {
		return p.writeRotate(w, r, http.StatusUnprocessableEntity, overlapDefault, err)
	}
	if err != nil {
		return keyProblem(err, key.ID)
	}
	key.APIKey = rotation.Old
	old := showKey(key, p.Clock())
	return p.writeCreated(w, r, rotation.New, &old, rotation.Secret)
}

// keyProblem is why a key can't be rotated or changed.
func keyProblem(err error, id string) error {
	conflict := func(code, text string) error { return httpapi.NewProblem(http.StatusConflict, code, text) }
	switch {
	case errors.Is(err, tenants.ErrShownOnce):
		return conflict("secret_shown_once", "This key was rotated already, and the new one was shown once. If you did not save it, rotate the new one.")
	case errors.Is(err, tenants.ErrKeyRotated):
		return conflict("api_key_rotated", "This key was rotated already: another one takes its place. Rotate that one, or revoke this one.")
	case errors.Is(err, tenants.ErrKeyRevoked):
		return conflict("api_key_revoked", "This key is revoked: it can't be rotated or changed. Create a new one.")
	case errors.Is(err, tenants.ErrKeyExpired):
		return conflict("api_key_expired", "This key has expired: it can't be rotated or changed. Create a new one.")
	}
	return pages.ProblemOf(err, "API key", id)
}
