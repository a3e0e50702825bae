package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/sourcemap"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// mapsPath is the list of a project's source maps.
const mapsPath = groupsPath + "/source-maps"

type mapsPage struct {
	Projects []ui.Choice
	Project  string
	Release  string
	Command  ui.Code
	Search   postgres.MapSearch
	Maps     []shownMap
	Pager    ui.Pager
}

// shownMap is a source map as the page shows it.
type shownMap struct {
	Name, Release, DebugID string
	Size                   int64
	Uploaded, Used         time.Time
}

// showMaps shows the source maps of a project: the first, unless one is named.
func (c *console) showMaps(w http.ResponseWriter, r *http.Request) error {
	organization, query := identity.FromContext(r.Context()).Organization, r.URL.Query()
	page := mapsPage{Release: query.Get("release")}
	var err error
	if page.Projects, page.Project, err = c.projects(organization, query.Get("project")); err != nil {
		return err
	}
	if strings.ContainsRune(page.Release, 0) || strings.ToValidUTF8(page.Release, "") != page.Release {
		return httpapi.NotFound("release", page.Release)
	}
	page.Command = ui.Code{ID: "upload", Label: "Command that uploads source maps", Copy: "Copy command",
		Text: "weir sourcemaps upload dist/ --release=1.0.0 --url-prefix=~/static --project=" + page.Project}
	if err := c.readMaps(r, organization, &page); err != nil {
		return err
	}
	c.pages.Write(w, r, http.StatusOK, "sourcemaps", ui.View{Title: "Source maps", Wide: true, Data: page})
	return nil
}

// projects are those of an organization to choose from, of which one is chosen: the first, unless one is named.
func (c *console) projects(organization, named string) (choices []ui.Choice, chosen string, err error) {
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

func (c *console) readMaps(r *http.Request, organization string, page *mapsPage) error {
	var after postgres.MapPlace
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &after); err != nil {
			return err
		}
	}
	found, err := c.Service.Maps(r.Context(), organization, page.Project, page.Release, after, pageSize+1)
	if err != nil {
		return err
	}
	if page.Search, err = c.Service.MapSearch(r.Context(), organization, page.Project); err != nil {
		return err
	}
	list := httpapi.NewList(r, found, pageSize, func(last postgres.SourceMap) any { return last.Place() })
	page.Pager = ui.NewPager(r, list.NextCursor)
	for _, m := range list.Items {
		page.Maps = append(page.Maps, shownMap{m.Name, m.Release, m.DebugID, m.Size, m.Uploaded, m.Used})
	}
	return nil
}

// mapsOf is the address of a project's source maps.
func mapsOf(project string) string { return mapsPath + "?project=" + url.QueryEscape(project) }

// whyPrinted says why calls of an error are shown as they were printed.
func whyPrinted(frames []postgres.Frame, build postgres.Build) (reasons []string) {
	for _, f := range frames {
		if f.Printed == nil || f.Printed.Unmapped == "" {
			if f.Printed == nil && f.Column > 0 && strings.Contains(f.File, "://") && strings.HasSuffix(sourcemap.ScriptName(f.File), ".js") {
				reasons = append(reasons, "There was no source map in the project when the error came.")
			}
			continue
		}
		script := sourcemap.ScriptName(f.File)
		switch f.Printed.Unmapped {
		case trace.NoBuild:
			reasons = append(reasons, "The error names neither a release nor a debug id of its scripts: send release in the metadata of the entry.")
		case trace.NoMap:
			named := "release " + build.Release
			if build.Release == "" {
				named = "the debug id of the error"
			}
			reasons = append(reasons, fmt.Sprintf("There was no source map of %s for %s.", script, named))
		case trace.NoColumn:
			reasons = append(reasons, fmt.Sprintf("Calls in %s have no column.", script))
		case trace.NoPosition:
			reasons = append(reasons, fmt.Sprintf("The source map of %s has nothing at line %d, column %d: is it that of another build?", script, f.Line, f.Column))
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}
