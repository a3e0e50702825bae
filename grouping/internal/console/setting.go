package console

import (
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
	groupinghttp "github.com/weirlog/weir/grouping/internal/http"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// settingsPath is the page of what a project has set for its errors.
const settingsPath = groupsPath + "/settings"

func (c *console) mountSettings(r chi.Router) {
	r.Get(settingsPath, c.pages.Handle(c.showSettings))
	r.Post(settingsPath, c.pages.Handle(c.setSettings))
	r.Post(settingsPath+"/owners", c.pages.Handle(c.setOwners))
	r.Post(settingsPath+"/owners/apply", c.pages.Handle(c.applyOwners))
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

func (c *console) showSettings(w http.ResponseWriter, r *http.Request) error {
	return c.writeSettings(w, r, r.URL.Query().Get("project"), http.StatusOK, func(*settingsPage) {})
}

// writeSettings shows the page of a project, changed by what somebody has sent.
func (c *console) writeSettings(w http.ResponseWriter, r *http.Request, project string, status int, sent func(page *settingsPage)) error {
	reader := identity.FromContext(r.Context())
	choices, project, err := c.projects(reader.Organization, project)
	if err != nil {
		return err
	}
	page := settingsPage{May: identity.RoleDecides(reader.Role()), Projects: choices, Project: project, Key: rand.Text()}
	if project != "" {
		if err := c.readSettings(r, &page); err != nil {
			return err
		}
	}
	sent(&page)
	c.pages.Write(w, r, status, "settings", ui.View{Title: "Settings for errors", Of: page.name(), Data: page, Flash: ui.TakeFlash(w, r, settingsFlashes)})
	return nil
}

func (c *console) readSettings(r *http.Request, page *settingsPage) (err error) {
	reader := identity.FromContext(r.Context())
	if page.Setting, err = c.Service.Setting(r.Context(), reader.Organization, page.Project); err != nil {
		return err
	}
	versions, err := c.Service.Owners(r.Context(), reader, page.Project)
	if err != nil {
		return groupinghttp.AlertProblem(err, page.Project, "")
	}
	page.SetBy, page.IfSince, page.Fields = who(r, page.Setting.By, ""), instant(page.Setting.Since), settingFields(page.Setting)
	page.Owners = ownersForm{IfSince: instant(time.Time{}), Me: reader.Member, Cursor: r.URL.Query().Get("from")}
	for i, v := range versions {
		if i == 0 {
			page.Owners.Text, page.Owners.IfSince = v.Rules.Text(), instant(v.Since)
		}
		page.Owners.Versions = append(page.Owners.Versions, ownersVersion{v.Since, who(r, v.By, ""), int64(len(v.Rules))})
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

// changing is a request that changes what a project has set, and the state that it saw.
func (c *console) changing(w http.ResponseWriter, r *http.Request) (request groups.Request, project string, ifSince *time.Time, err error) {
	if request, err = requestOf(w, r); err != nil {
		return request, "", nil, err
	}
	project = r.PostForm.Get("project")
	if !c.Directory.Owns(request.Who.Organization, project) {
		return request, "", nil, httpapi.NotFound("project", project)
	}
	since, err := time.Parse(time.RFC3339Nano, r.PostForm.Get("if_since"))
	if err != nil {
		return request, project, nil, nil //nolint:nilerr // then it saw none
	}
	return request, project, &since, nil
}

const settingsChanged = "Somebody else has changed this meanwhile, to what you see here. Nothing of yours was saved."

func (c *console) setSettings(w http.ResponseWriter, r *http.Request) error {
	request, project, ifSince, err := c.changing(w, r)
	if err != nil {
		return err
	}
	set := settingIn(r)
	if _, err = c.Service.Set(r.Context(), request, project, set, ifSince); err != nil {
		return c.refuseSettings(w, r, project, err, groupinghttp.Refusal(err), func(page *settingsPage, invalid grouping.Invalid) {
			if page.Fields = settingFields(set); !placed(page.Fields, invalid) {
				page.Fault = invalid.Error()
			}
		})
	}
	return alertDone(w, r, "set", settingsOf(project))
}

// refuseSettings shows the page again with what was changed meanwhile, or
// what is invalid; any other error is answered as such.
func (c *console) refuseSettings(w http.ResponseWriter, r *http.Request, project string, err, other error, show func(*settingsPage, grouping.Invalid)) error {
	var invalid grouping.Invalid
	switch {
	case errors.Is(err, groups.ErrSettingsChanged):
		return c.writeSettings(w, r, project, http.StatusConflict, func(page *settingsPage) { page.Fault = settingsChanged })
	case errors.As(err, &invalid):
		return c.writeSettings(w, r, project, http.StatusUnprocessableEntity, func(page *settingsPage) { show(page, invalid) })
	}
	return other
}

// settingsOf is the address of a project's page.
func settingsOf(project string) string { return settingsPath + "?project=" + url.QueryEscape(project) }

func (c *console) setOwners(w http.ResponseWriter, r *http.Request) error {
	request, project, ifSince, err := c.changing(w, r)
	if err != nil {
		return err
	}
	text := r.PostForm.Get("rules")
	rules, err := grouping.ParseOwners(text)
	if err == nil {
		_, err = c.Service.SetOwners(r.Context(), request, project, rules, ifSince)
	}
	if err != nil {
		return c.refuseSettings(w, r, project, err, groupinghttp.AlertProblem(err, project, ""), func(page *settingsPage, invalid grouping.Invalid) {
			page.Owners.Text, page.Owners.Fault = text, invalid.Error()
		})
	}
	return alertDone(w, r, "owners-set", settingsOf(project)+"#owners")
}

func (c *console) applyOwners(w http.ResponseWriter, r *http.Request) error {
	request, project, _, err := c.changing(w, r)
	if err != nil {
		return err
	}
	var after postgres.GroupCursor
	if cursor := r.PostForm.Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &after); err != nil {
			return err
		}
	}
	done, err := c.Service.ApplyOwners(r.Context(), request, project, after)
	if err != nil {
		return groupinghttp.AlertProblem(err, project, "")
	}
	if done.Next == nil {
		return alertDone(w, r, "owners-applied", settingsOf(project)+"#owners")
	}
	next := httpapi.EncodeCursor(r, done.Next)
	return alertDone(w, r, "owners-more", fmt.Sprintf("%s&from=%s#owners", settingsOf(project), url.QueryEscape(next)))
}
