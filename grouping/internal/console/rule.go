package console

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	groupinghttp "github.com/weirlog/weir/grouping/internal/http"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// rulesPath is where the rules of a project are.
const rulesPath = groupsPath + "/rules"

// rulesOf is the address of a project's rules.
func rulesOf(project string) string { return rulesPath + "?project=" + url.QueryEscape(project) }

var ruleFlashes = map[string]string{ // bounded by what can be done to rules
	"rules-set": "The rules are saved. They hold for errors that come two seconds later or after that.",
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
func (c *console) showRules(w http.ResponseWriter, r *http.Request) error {
	who, query := identity.FromContext(r.Context()), r.URL.Query()
	page, found, err := c.rulesPage(r, query.Get("project"))
	if err != nil {
		return err
	}
	page.Text = found.Text
	if named := query.Get("version"); named != "" {
		opened, err := c.Service.RulesVersion(r.Context(), who.Organization, page.Project, groupinghttp.VersionOf(named))
		if err != nil {
			return groupinghttp.RulesProblem(err, named)
		}
		page.Text, page.Opened = opened.Text, opened.Version
		page.Note.Value = fmt.Sprintf("As in version %d", opened.Version)
	}
	return c.writeRules(w, r, http.StatusOK, page)
}

func (c *console) writeRules(w http.ResponseWriter, r *http.Request, status int, page rulesPage) error {
	c.pages.Write(w, r, status, "rules", ui.View{Title: "Rules", Data: page, Flash: ui.TakeFlash(w, r, ruleFlashes)})
	return nil
}

// maxVersions is how many versions the page lists.
const maxVersions = 100

func (c *console) rulesPage(r *http.Request, project string) (page rulesPage, newest postgres.Rules, err error) {
	who := identity.FromContext(r.Context())
	page.May, page.Key = identity.RoleDecides(who.Role()), rand.Text()
	page.Note = ui.Field{Name: "note", Label: "Why", MaxLength: grouping.MaxRuleNote, Optional: true, Autocomplete: "off"}
	if page.Projects, page.Project, err = c.projects(who.Organization, project); err != nil || page.Project == "" {
		return page, newest, err
	}
	versions, err := c.Service.RulesVersions(r.Context(), who.Organization, page.Project, math.MaxInt64, maxVersions)
	for i, v := range versions {
		if i == 0 {
			newest, page.Version = v, v.Version
		}
		page.Versions = append(page.Versions, shownVersion{v.Version, v.Since, author(r, v.By), v.Note, v.Restored, i == 0,
			rulesOf(page.Project) + "&version=" + strconv.FormatInt(v.Version, 10)})
	}
	return page, newest, err
}

// author is who set rules, as the reader knows them.
func author(r *http.Request, by postgres.Author) string { return who(r, by.ID, by.Name) }

// changeRules previews or saves what is in the editor.
func (c *console) changeRules(w http.ResponseWriter, r *http.Request) error {
	request, err := requestOf(w, r)
	if err != nil {
		return err
	}
	page, _, err := c.rulesPage(r, r.PostForm.Get("project"))
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
		if preview, err = c.Service.PreviewRules(r.Context(), request.Who.Organization, page.Project, page.Text); err == nil {
			page.Preview = showPreview(preview)
			return c.writeRules(w, r, http.StatusOK, page)
		}
	} else {
		_, err = c.Service.SetRules(r.Context(), request, page.Project, groups.RulesChange{Text: page.Text, Note: page.Note.Value, IfVersion: &based})
		if err = unlessRepeated(err); err == nil {
			ui.SetFlash(w, "rules-set")
			http.Redirect(w, r, rulesOf(page.Project), http.StatusSeeOther)
			return nil
		}
	}
	return c.refuseRules(w, r, page, err)
}

// refuseRules shows the editor again with what is wrong.
func (c *console) refuseRules(w http.ResponseWriter, r *http.Request, page rulesPage, err error) error {
	var invalid grouping.Invalid
	var conflict groups.RulesConflict
	switch {
	case errors.As(err, &conflict):
		page.Fault = fmt.Sprintf("Somebody has saved version %d meanwhile: it is below. Save again to replace it.", conflict.Rules.Version)
		page.Version = conflict.Rules.Version
		return c.writeRules(w, r, http.StatusConflict, page)
	case errors.As(err, &invalid):
		if page.Fault = invalid.Error(); invalid.Field == page.Note.Name {
			page.Fault, page.Note.Fault = "", page.Fault
		}
		return c.writeRules(w, r, http.StatusUnprocessableEntity, page)
	}
	return groupinghttp.RulesProblem(err, "")
}
