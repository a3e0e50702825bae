package console

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
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

// rulesPath is where the rules of a project are.
const rulesPath = groupsPath + "/rules"

var ruleFlashes = map[string]string{ // bounded by what can be done to rules
	"rules-set": "The rules are saved. They hold for errors that come two seconds later or after that.",
}

// rulePages show and change the rules of projects.
type rulePages struct {
	*console
	rules *groups.Rules
}

func (p *rulePages) mount(r chi.Router) {
	r.Get(rulesPath, p.shows(p.showRules))
	r.Post(rulesPath, p.changes(p.changeRules))
}

type rulesPage struct {
	Projects []ui.Choice
	Project  string
	May      bool
	Text     string // in the editor
	Note     ui.Field
	Version  int64 // that the editor is based on
	Key      string
	Fault    string // of the text
	Opened   int64  // an earlier version is in the editor; 0: none
	Preview  *shownPreview
	Versions []shownVersion
}

type shownVersion struct {
	Version  int64
	Since    time.Time
	Who      string
	Note     string
	Restored int64
	Newest   bool
	Href     string
}

// shownPreview is what rules would do, a row for each change.
type shownPreview struct {
	groups.RulesPreview
	Rows []shownChange
	More int64
}

type shownChange struct {
	What       string
	From, Into []shownSide
}

type shownSide struct {
	grouping.PreviewSide
	Href string // of a group of now
}

func showSides(sides []grouping.PreviewSide) (shown []shownSide) {
	for _, side := range sides {
		s := shownSide{PreviewSide: side}
		if side.ID != "" {
			s.Href = groupsPath + "/" + side.ID
		}
		shown = append(shown, s)
	}
	return shown
}

func showPreview(p groups.RulesPreview) *shownPreview {
	shown := &shownPreview{RulesPreview: p, More: int64(p.MoreJoins + p.MoreSplits + p.MoreMoves)}
	for _, of := range []struct {
		what    string
		changes []grouping.PreviewChange
	}{{"become one", p.Joins}, {"is taken apart", p.Splits}, {"goes on in a new group", p.Moves}} {
		for _, change := range of.changes {
			shown.Rows = append(shown.Rows, shownChange{of.what, showSides(change.From), showSides(change.Into)})
		}
	}
	return shown
}

// showRules shows the rules of a project, or an earlier version of them in the editor.
func (p *rulePages) showRules(w http.ResponseWriter, r *http.Request) error {
	who, query := identity.FromContext(r.Context()), r.URL.Query()
	page, found, err := p.rulesPage(r, query.Get("project"))
	if err != nil {
		return err
	}
	page.Text = found.Text
	if named := query.Get("version"); named != "" {
		version, err := groups.ParseRulesVersion(named)
		if err != nil {
			return err
		}
		opened, err := p.rules.Version(r.Context(), who.Organization, page.Project, version)
		if err != nil {
			return err
		}
		page.Text, page.Opened = opened.Text, opened.Version
		page.Note.Value = fmt.Sprintf("As in version %d", opened.Version)
	}
	return p.writeRules(w, r, http.StatusOK, page)
}

func (p *rulePages) writeRules(w http.ResponseWriter, r *http.Request, status int, page rulesPage) error {
	p.pages.Write(w, r, status, "rules", ui.View{Title: "Rules", Data: page, Flash: ui.TakeFlash(w, r, ruleFlashes)})
	return nil
}

// maxVersions is how many versions the page lists.
const maxVersions = 100

func (p *rulePages) rulesPage(r *http.Request, project string) (page rulesPage, newest postgres.Rules, err error) {
	reader := identity.FromContext(r.Context())
	page.May, page.Key = may(r), rand.Text()
	page.Note = ui.Field{Name: "note", Label: "Why", MaxLength: grouping.MaxRuleNote, Optional: true, Autocomplete: "off"}
	if page.Projects, page.Project, err = p.projects(reader.Organization, project); err != nil || page.Project == "" {
		return page, newest, err
	}
	versions, err := p.rules.Versions(r.Context(), reader.Organization, page.Project, math.MaxInt64, maxVersions)
	for i, v := range versions {
		if i == 0 {
			newest, page.Version = v, v.Version
		}
		page.Versions = append(page.Versions, shownVersion{v.Version, v.Since, p.who(r, v.By.ID, v.By.Name), v.Note, v.Restored, i == 0,
			ofProject(rulesPath, page.Project) + "&version=" + strconv.FormatInt(v.Version, 10)})
	}
	return page, newest, err
}

// changeRules previews or saves what is in the editor.
func (p *rulePages) changeRules(w http.ResponseWriter, r *http.Request, request groups.Request) error {
	page, _, err := p.rulesPage(r, r.PostForm.Get("project"))
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
		var preview groups.RulesPreview
		if preview, err = p.rules.Preview(r.Context(), request.Who.Organization, page.Project, page.Text); err == nil {
			page.Preview = showPreview(preview)
			return p.writeRules(w, r, http.StatusOK, page)
		}
	} else {
		_, err = p.rules.Set(r.Context(), request, page.Project, groups.RulesChange{Text: page.Text, Note: page.Note.Value, IfVersion: &based})
		if err = unlessRepeated(err); err == nil {
			return redirect(w, r, "rules-set", ofProject(rulesPath, page.Project))
		}
	}
	return p.refuseRules(w, r, page, err)
}

// refuseRules shows the editor again with what is wrong.
func (p *rulePages) refuseRules(w http.ResponseWriter, r *http.Request, page rulesPage, err error) error {
	var invalid grouping.Invalid
	var conflict groups.RulesConflict
	switch {
	case errors.As(err, &conflict):
		page.Fault = fmt.Sprintf("Somebody has saved version %d meanwhile: it is below. Save again to replace it.", conflict.Rules.Version)
		page.Version = conflict.Rules.Version
		return p.writeRules(w, r, http.StatusConflict, page)
	case errors.As(err, &invalid):
		if page.Fault = invalid.Error(); invalid.Field == page.Note.Name {
			page.Fault, page.Note.Fault = "", page.Fault
		}
		return p.writeRules(w, r, http.StatusUnprocessableEntity, page)
	}
	return err
}
