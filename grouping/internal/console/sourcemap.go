package console

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// mapsPath is the list of a project's source maps.
const mapsPath = groupsPath + "/source-maps"

// mapPages list the source maps of projects.
type mapPages struct {
	*console
	maps *groups.SourceMaps
}

func (p *mapPages) mount(r chi.Router) { r.Get(mapsPath, p.shows(p.showMaps)) }

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
func (p *mapPages) showMaps(w http.ResponseWriter, r *http.Request) error {
	organization, query := identity.FromContext(r.Context()).Organization, r.URL.Query()
	page := mapsPage{Release: query.Get("release")}
	var err error
	if page.Projects, page.Project, err = ui.ChooseProject(p.directory, organization, query.Get("project")); err != nil {
		return err
	}
	if strings.ContainsRune(page.Release, 0) || strings.ToValidUTF8(page.Release, "") != page.Release {
		return httpapi.NotFound("release", page.Release)
	}
	page.Command = ui.Code{ID: "upload", Label: "Command that uploads source maps", Copy: "Copy command",
		Text: "weir sourcemaps upload dist/ --release=1.0.0 --url-prefix=~/static --project=" + page.Project}
	if err := p.readMaps(r, organization, &page); err != nil {
		return err
	}
	p.pages.Write(w, r, http.StatusOK, "sourcemaps", ui.View{Title: "Source maps", Wide: true, Data: page})
	return nil
}

func (p *mapPages) readMaps(r *http.Request, organization string, page *mapsPage) error {
	var after postgres.MapPlace
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &after); err != nil {
			return err
		}
	}
	found, err := p.maps.List(r.Context(), organization, page.Project, page.Release, after, pageSize+1)
	if err != nil {
		return err
	}
	if page.Search, err = p.maps.Progress(r.Context(), organization, page.Project); err != nil {
		return err
	}
	list := httpapi.NewList(r, found, pageSize, func(last postgres.SourceMap) any { return last.Place() })
	page.Pager = ui.NewPager(r, list.NextCursor)
	for _, m := range list.Items {
		page.Maps = append(page.Maps, shownMap{m.Name, m.Release, m.DebugID, m.Size, m.Uploaded, m.Used})
	}
	return nil
}
