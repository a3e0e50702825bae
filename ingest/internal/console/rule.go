package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// rulesPath is where the rules of a project are.
const rulesPath = "/console/logs/rules"

var ruleFlashes = map[string]string{ // bounded by what can be done to rules
	"rules-set": "The rules are saved. They hold for entries that come a second later or after that.",
}

type rulesPage struct {
	Projects []ui.Choice
	Project  string
	May      bool
	Text     string // in the editor
	Note     ui.Field
	Version  int64  // that the editor is based on
	Fault    string // of the text
	Opened   int64  // an earlier version is in the editor; 0: none
	Preview  *rules.Preview
	Patterns []string
	Versions []shownRules
}

type shownRules struct {
	ingest.RuleVersion
	Who    string
	Newest bool
	Href   string
}

// ruledProject is the project whose rules are shown: the first, unless one is named.
func (c *console) ruledProject(organization, named string) (choices []ui.Choice, chosen string, err error) {
	projects := c.Directory.Projects(organization)
	if chosen = named; chosen == "" && len(projects) > 0 {
		chosen = projects[0].Project
	}
	for _, p := range projects {
		choices = append(choices, ui.Choice{Value: p.Project, Text: cmp.Or(p.Name, p.Project), Selected: p.Project == chosen})
	}
	if chosen != "" && !c.Directory.Owns(organization, chosen) {
		return nil, "", httpapi.NotFound("project", chosen)
	}
	return choices, chosen, nil
}

func (c *console) rulesPage(r *http.Request, project string) (page rulesPage, err error) {
	who := identity.FromContext(r.Context())
	page.May, page.Patterns = rules.May(who), ingest.RedactionPatterns()
	page.Note = ui.Field{Name: "note", Label: "Why", MaxLength: ingest.MaxRuleNote, Optional: true, Autocomplete: "off"}
	if page.Projects, page.Project, err = c.ruledProject(who.Organization, project); err != nil || page.Project == "" {
		return page, err
	}
	versions, err := c.Rules.Versions(r.Context(), who, page.Project, 0, ingest.MaxRuleVersions)
	if err != nil {
		return page, ingesthttp.RulesProblem(err, page.Project, "")
	}
	for i, v := range versions {
		if i == 0 {
			page.Version, page.Text = v.Version, v.Text
		}
		page.Versions = append(page.Versions, shownRules{v, c.nameOf(who, v), i == 0, ofRules(page.Project) + "&version=" + strconv.FormatInt(v.Version, 10)})
	}
	return page, nil
}

// nameOf is who set rules: the reader, a member, or an API key by its name.
func (c *console) nameOf(who identity.Principal, v ingest.RuleVersion) string {
	if v.By == who.Member {
		return "you"
	}
	if key, found := c.Directory.Key(who.Organization, v.By); found {
		return "API key " + cmp.Or(key.Name, key.ID)
	}
	return cmp.Or(v.ByName, v.By)
}

func ofRules(project string) string { return rulesPath + "?project=" + url.QueryEscape(project) }

// showRules shows the rules of a project, or an earlier version of them in the editor.
func (c *console) showRules(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	page, err := c.rulesPage(r, query.Get("project"))
	if err != nil {
		return err
	}
	if named := query.Get("version"); named != "" {
		version, err := ingesthttp.ParseRulesVersion(named)
		if err != nil {
			return err
		}
		opened, err := c.Rules.Version(r.Context(), identity.FromContext(r.Context()), page.Project, version)
		if err != nil {
			return ingesthttp.RulesProblem(err, page.Project, named)
		}
		page.Text, page.Opened = opened.Text, opened.Version
		page.Note.Value = fmt.Sprintf("As in version %d", opened.Version)
	}
	c.writeRules(w, r, http.StatusOK, page)
	return nil
}

func (c *console) writeRules(w http.ResponseWriter, r *http.Request, status int, page rulesPage) {
	c.pages.Write(w, r, status, "rules", ui.View{Title: "Rules", Data: page, Flash: ui.TakeFlash(w, r, ruleFlashes)})
}

// changeRules previews or saves what is in the editor.
func (c *console) changeRules(w http.ResponseWriter, r *http.Request) error {
	who := identity.FromContext(r.Context())
	if !rules.May(who) {
		return ingesthttp.RulesProblem(rules.ErrMayNot, "", "")
	}
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	page, err := c.rulesPage(r, r.PostForm.Get("project"))
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
		preview, err := c.Rules.Preview(r.Context(), who, page.Project, page.Text)
		if err == nil {
			page.Preview = &preview
			c.writeRules(w, r, http.StatusOK, page)
			return nil
		}
		return c.refuseRules(w, r, page, err)
	}
	wish := rules.Wish{Project: page.Project, Text: page.Text, Note: page.Note.Value, IfVersion: &based}
	if _, err = c.Rules.Set(r.Context(), who, ingesthttp.RulesOrigin(r, c.Guard), wish); err != nil {
		return c.refuseRules(w, r, page, err)
	}
	ui.SetFlash(w, "rules-set")
	http.Redirect(w, r, ofRules(page.Project), http.StatusSeeOther)
	return nil
}

// refuseRules shows the editor again with what is wrong.
func (c *console) refuseRules(w http.ResponseWriter, r *http.Request, page rulesPage, err error) error {
	var invalid ingest.Invalid
	var conflict rules.Conflict
	switch {
	case errors.As(err, &conflict):
		page.Fault = fmt.Sprintf("Somebody has saved version %d meanwhile: it is below. Save again to replace it.", conflict.Now.Version)
		page.Version = conflict.Now.Version
		c.writeRules(w, r, http.StatusConflict, page)
		return nil
	case errors.As(err, &invalid):
		if page.Fault = invalid.Error(); invalid.Field == page.Note.Name {
			page.Fault, page.Note.Fault = "", page.Fault
		}
		c.writeRules(w, r, http.StatusUnprocessableEntity, page)
		return nil
	}
	return ingesthttp.RulesProblem(err, page.Project, "")
}
