package console

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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

// settingsPath is the page of what a project has set for its errors.
const settingsPath = groupsPath + "/settings"

// settingPages show and change what projects have set for their errors.
type settingPages struct {
	*console
	settings *groups.Settings
	owners   *groups.Owners
}

func (p *settingPages) mount(r chi.Router) {
	r.Get(settingsPath, p.shows(p.showSettings))
	r.Post(settingsPath, p.changes(p.setSettings))
	r.Post(settingsPath+"/owners", p.changes(p.setOwners))
	r.Post(settingsPath+"/owners/apply", p.changes(p.applyOwners))
}

var settingsFlashes = map[string]string{ // bounded by what the page does
	"set":            "The settings are kept. Errors accepted from now on are counted by them.",
	"owners-set":     "The rules are kept. They hold for errors that are new from now on.",
	"owners-applied": "The rules were applied to errors that nobody looked after.",
	"owners-more":    "The rules were applied to the 1,000 errors last seen that nobody looked after. Apply them again for the others.",
}

type settingsPage struct {
	May      bool
	Projects []ui.Choice
	Project  string
	Key      string
	Fault    string
	Setting  postgres.Setting
	SetBy    string
	IfSince  string // of the settings
	Fields   []ui.Field
	Owners   ownersForm
}

// name is that of the project.
func (p *settingsPage) name() string {
	for _, choice := range p.Projects {
		if choice.Selected {
			return choice.Text
		}
	}
	return ""
}

// ownersForm are the rules about who looks after new errors.
type ownersForm struct {
	Text, Fault string
	IfSince     string
	Me          string
	Cursor      string // where applying them goes on
	Versions    []ownersVersion
}

type ownersVersion struct {
	At    time.Time
	By    string
	Rules int64
}

// pathLabels are the things that paths lead to.
var pathLabels = [...][2]string{{"release", "Release"}, {"service", "Service"}, {"user", "User"}, {"host", "Host"}}

func (p *settingPages) showSettings(w http.ResponseWriter, r *http.Request) error {
	return p.writeSettings(w, r, r.URL.Query().Get("project"), http.StatusOK, func(*settingsPage) {})
}

// writeSettings shows the page of a project, changed by what somebody has sent.
func (p *settingPages) writeSettings(w http.ResponseWriter, r *http.Request, project string, status int, sent func(page *settingsPage)) error {
	reader := identity.FromContext(r.Context())
	choices, project, err := ui.ChooseProject(p.directory, reader.Organization, project)
	if err != nil {
		return err
	}
	page := settingsPage{May: may(r), Projects: choices, Project: project, Key: rand.Text()}
	if project != "" {
		if err := p.readSettings(r, &page); err != nil {
			return err
		}
	}
	sent(&page)
	p.pages.Write(w, r, status, "settings", ui.View{Title: "Settings for errors", Of: page.name(), Data: page, Flash: ui.TakeFlash(w, r, settingsFlashes)})
	return nil
}

func (p *settingPages) readSettings(r *http.Request, page *settingsPage) (err error) {
	reader := identity.FromContext(r.Context())
	if page.Setting, err = p.settings.Find(r.Context(), reader.Organization, page.Project); err != nil {
		return err
	}
	versions, err := p.owners.Versions(r.Context(), reader.Organization, page.Project)
	if err != nil {
		return err
	}
	page.SetBy, page.IfSince, page.Fields = p.who(r, page.Setting.By, ""), instant(page.Setting.Since), settingFields(page.Setting)
	page.Owners = ownersForm{IfSince: instant(time.Time{}), Me: cmp.Or(reader.Name, reader.Member), Cursor: r.URL.Query().Get("from")}
	for i, v := range versions {
		if i == 0 {
			page.Owners.Text, page.Owners.IfSince = v.Rules.ByName(p.members(r)).Text(), instant(v.Since)
		}
		page.Owners.Versions = append(page.Owners.Versions, ownersVersion{v.Since, p.who(r, v.By, ""), int64(len(v.Rules))})
	}
	return nil
}

// instant writes a time as it is read again.
func instant(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

func settingFields(s postgres.Setting) (fields []ui.Field) {
	for _, of := range pathLabels {
		paths := strings.Join(*s.Paths.Each()[of[0]], ", ")
		fields = append(fields, ui.Field{Name: of[0], Label: of[1], Value: paths, Optional: true, Code: true, Autocomplete: "off"})
	}
	return append(fields, ui.Field{Name: "archive_after_days", Label: "Archive after so many days without an error", Type: "number",
		Value: strconv.Itoa(s.ArchiveDays), Required: true, Hint: "0: never. Any new error opens it again."})
}

// settingIn reads the form of the settings.
func settingIn(r *http.Request) (s postgres.Setting) {
	paths := s.Paths.Each()
	for _, of := range pathLabels {
		for path := range strings.SplitSeq(r.PostForm.Get(of[0]), ",") {
			if path = strings.TrimSpace(path); path != "" {
				*paths[of[0]] = append(*paths[of[0]], path)
			}
		}
	}
	days, err := strconv.Atoi(strings.TrimSpace(r.PostForm.Get("archive_after_days")))
	if s.ArchiveDays = days; err != nil {
		s.ArchiveDays = -1 // which is none
	}
	return s
}

// seen is the project that a form changes, and the state that it saw.
func (p *settingPages) seen(r *http.Request) (project string, ifSince *time.Time, err error) {
	project = r.PostForm.Get("project")
	if !p.directory.Owns(identity.FromContext(r.Context()).Organization, project) {
		return project, nil, httpapi.NotFound("project", project)
	}
	since, err := time.Parse(time.RFC3339Nano, r.PostForm.Get("if_since"))
	if err != nil {
		return project, nil, nil //nolint:nilerr // then it saw none
	}
	return project, &since, nil
}

const settingsChanged = "Somebody else has changed this meanwhile, to what you see here. Nothing of yours was saved."

func (p *settingPages) setSettings(w http.ResponseWriter, r *http.Request, request groups.Request) error {
	project, ifSince, err := p.seen(r)
	if err != nil {
		return err
	}
	set := settingIn(r)
	if _, err = p.settings.Set(r.Context(), request, project, set, ifSince); err != nil {
		return p.refuse(w, r, project, err, func(page *settingsPage, invalid grouping.Invalid) {
			if page.Fields = settingFields(set); !placed(page.Fields, invalid) {
				page.Fault = invalid.Error()
			}
		})
	}
	return redirect(w, r, "set", ofProject(settingsPath, project))
}

// refuse shows the page again with what was changed meanwhile, or
// what is invalid; any other error is answered as such.
func (p *settingPages) refuse(w http.ResponseWriter, r *http.Request, project string, err error, show func(*settingsPage, grouping.Invalid)) error {
	var invalid grouping.Invalid
	switch {
	case errors.Is(err, groups.ErrSettingsChanged):
		return p.writeSettings(w, r, project, http.StatusConflict, func(page *settingsPage) { page.Fault = settingsChanged })
	case errors.As(err, &invalid):
		return p.writeSettings(w, r, project, http.StatusUnprocessableEntity, func(page *settingsPage) { show(page, invalid) })
	}
	return err
}

func (p *settingPages) setOwners(w http.ResponseWriter, r *http.Request, request groups.Request) error {
	project, ifSince, err := p.seen(r)
	if err != nil {
		return err
	}
	text := r.PostForm.Get("rules")
	rules, err := grouping.ParseOwners(text)
	if err == nil {
		_, err = p.owners.Set(r.Context(), request, project, rules, ifSince)
	}
	if err != nil {
		return p.refuse(w, r, project, err, func(page *settingsPage, invalid grouping.Invalid) {
			page.Owners.Text, page.Owners.Fault = text, invalid.Error()
		})
	}
	return redirect(w, r, "owners-set", ofProject(settingsPath, project)+"#owners")
}

func (p *settingPages) applyOwners(w http.ResponseWriter, r *http.Request, request groups.Request) error {
	project, _, err := p.seen(r)
	if err != nil {
		return err
	}
	var after postgres.GroupCursor
	if cursor := r.PostForm.Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &after); err != nil {
			return err
		}
	}
	done, err := p.owners.Apply(r.Context(), request, project, after)
	if err != nil {
		return err
	}
	if done.Next == nil {
		return redirect(w, r, "owners-applied", ofProject(settingsPath, project)+"#owners")
	}
	next := httpapi.EncodeCursor(r, done.Next)
	return redirect(w, r, "owners-more", fmt.Sprintf("%s&from=%s#owners", ofProject(settingsPath, project), url.QueryEscape(next)))
}
