package routes

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ruletext"
	"github.com/weirlog/weir/shared/ui"
)

// A Page shows and changes the rules of projects. The module's template "rules"
// shows a ui.Rules.
type Page struct {
	Rules
	Pages     *ui.Pages
	Directory *identity.Directory
	Path      string
	Saved     string                        // what readers learn once their rules are saved
	May       func(identity.Principal) bool // change rules
	Examples  any                           // of ui.Rules
}

// Mount adds the page to router.
func (p *Page) Mount(router chi.Router) {
	router.Get(p.Path, p.Pages.Handle(p.show))
	router.Post(p.Path, p.Pages.Handle(p.change))
}

// flash is the code of what readers learn.
const flash = "rules-set"

func (p *Page) write(w http.ResponseWriter, r *http.Request, status int, page ui.Rules) error {
	p.Pages.Write(w, r, status, "rules", ui.View{Title: "Rules", Data: page, Flash: ui.TakeFlash(w, r, map[string]string{flash: p.Saved})})
	return nil
}

func (p *Page) of(project string) string { return p.Path + "?project=" + url.QueryEscape(project) }

// read reads the rules of a project: the first, unless one is named.
func (p *Page) read(r *http.Request, project string) (page ui.Rules, err error) {
	who := identity.FromContext(r.Context())
	page = ui.Rules{Path: p.Path, May: p.May(who), Examples: p.Examples}
	page.Note = ui.Field{Name: "note", Label: "Why", MaxLength: ruletext.MaxNote, Optional: true, Autocomplete: "off"}
	if page.Projects, page.Project, err = ui.ChooseProject(p.Directory, who.Organization, project); err != nil || page.Project == "" {
		return page, err
	}
	versions, err := p.Versions(r.Context(), who, page.Project)(math.MaxInt64, ruletext.MaxVersions)
	for i, v := range versions {
		shown := ui.RulesVersion{Number: v.Number, At: v.At, Who: p.nameOf(who, v), Note: v.Note, Restored: v.Restored}
		if i == 0 {
			page.Version, page.Text = v.Number, v.Text
		} else {
			shown.Href = p.of(page.Project) + "&version=" + strconv.FormatInt(v.Number, 10)
		}
		page.Versions = append(page.Versions, shown)
	}
	return page, err
}

// nameOf is who set rules: the reader, a member, or an API key by its name.
func (p *Page) nameOf(who identity.Principal, v ruletext.Version) string {
	if v.By == who.Member {
		return "you"
	}
	if key, found := p.Directory.Key(who.Organization, v.By); found {
		return `Key "` + cmp.Or(key.Name, key.ID) + `"`
	}
	return cmp.Or(v.ByName, v.By)
}

// show shows the rules of a project, or an earlier version of them in the editor.
func (p *Page) show(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	page, err := p.read(r, query.Get("project"))
	if err != nil {
		return err
	}
	if named := query.Get("version"); named != "" {
		number, err := ruletext.ParseNumber(named)
		if err != nil {
			return err
		}
		opened, err := p.Versions(r.Context(), identity.FromContext(r.Context()), page.Project).Find(number)
		if err != nil {
			return err
		}
		page.Text, page.Opened = opened.Text, opened.Number
		page.Note.Value = fmt.Sprintf("As in version %d", opened.Number)
	}
	return p.write(w, r, http.StatusOK, page)
}

// change previews or saves what is in the editor.
func (p *Page) change(w http.ResponseWriter, r *http.Request) error {
	who := identity.FromContext(r.Context())
	if !p.May(who) {
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"Your role here is "+who.Role()+", which may not change rules. Ask one of the owners, admins or developers.")
	}
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	page, err := p.read(r, r.PostForm.Get("project"))
	if err == nil && page.Project == "" { // there is none
		err = httpapi.NotFound("project", "")
	}
	if err != nil {
		return err
	}
	based, err := strconv.ParseInt(r.PostForm.Get("version"), 10, 64)
	if err != nil {
		return httpapi.NotFound("version of rules", r.PostForm.Get("version"))
	}
	page.Text = strings.ReplaceAll(r.PostForm.Get("rules"), "\r\n", "\n") // as browsers send lines
	page.Version, page.Note.Value = based, r.PostForm.Get("note")
	if r.PostForm.Get("do") == "preview" {
		if page.Preview, err = p.Preview(r.Context(), who, page.Project, page.Text); err != nil {
			return p.refuse(w, r, page, err)
		}
		return p.write(w, r, http.StatusOK, page)
	}
	if _, err = p.Set(r, ruletext.Wish{Project: page.Project, Text: page.Text, Note: page.Note.Value, IfVersion: &based}); err != nil {
		return p.refuse(w, r, page, err)
	}
	ui.SetFlash(w, flash)
	http.Redirect(w, r, p.of(page.Project), http.StatusSeeOther)
	return nil
}

// refuse shows the editor again with what is wrong.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request, page ui.Rules, err error) error {
	page.Preview = nil
	var conflict ruletext.Conflict
	var problem *httpapi.Problem
	switch {
	case errors.As(err, &conflict):
		page.Version, page.Fault = conflict.Now.Number,
			fmt.Sprintf("Somebody has saved version %d meanwhile: it is below. Save again to replace it.", conflict.Now.Number)
		return p.write(w, r, http.StatusConflict, page)
	case errors.As(err, &problem) && len(problem.Faults) > 0:
		fault, at := problem.Faults[0], &page.Fault
		if fault.Pointer == "/"+page.Note.Name {
			at = &page.Note.Fault
		}
		*at = fault.Detail + " " + fault.Fix
		return p.write(w, r, http.StatusUnprocessableEntity, page)
	}
	return err
}
