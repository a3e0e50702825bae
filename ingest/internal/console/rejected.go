package console

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

const rejectedPath = path + "/rejected"

// rejectedOf is the address of what was rejected of a project; empty: of the first.
func rejectedOf(project string) string {
	if project == "" {
		return rejectedPath
	}
	return rejectedPath + "?" + url.Values{"project": {project}}.Encode()
}

type rejectedPage struct {
	Projects []ui.Choice
	Rejected []shownRejected
	Pager    ui.Pager
	All      string // the address without filters; empty: there are none
}

type shownRejected struct {
	ingest.Rejected
	Key  identity.Key
	Last ui.Moment
}

// showRejected takes the project, or the first one, and the filters of
// GET /v1/projects/{project}/rejected-entries.
func (c *console) showRejected(w http.ResponseWriter, r *http.Request) error {
	who, query := identity.FromContext(r.Context()), r.URL.Query()
	filter := postgres.RejectedFilter{Project: query.Get("project"), Key: query.Get("key"), Code: query.Get("code"), Limit: pageSize + 1}
	projects := c.Directory.Projects(who.Organization)
	if filter.Project == "" && len(projects) > 0 {
		filter.Project = projects[0].Project
	}
	page := rejectedPage{}
	for _, p := range projects {
		page.Projects = append(page.Projects, ui.Choice{Value: p.Project, Text: cmp.Or(p.Name, p.Project), Selected: p.Project == filter.Project})
	}
	if filter.Key != "" || filter.Code != "" {
		page.All = ui.With(r, "key", "", "code", "", "cursor", "")
	}
	if cursor := query.Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &filter.After); err != nil {
			return err
		}
	}
	if filter.Project != "" {
		if err := c.findRejected(r, who, filter, &page); err != nil {
			return ingesthttp.NotFound(err, ingest.Search{Project: filter.Project})
		}
	}
	c.pages.Write(w, r, http.StatusOK, "rejected", ui.View{Title: "Rejected entries", Data: page})
	return nil
}

func (c *console) findRejected(r *http.Request, who identity.Principal, filter postgres.RejectedFilter, page *rejectedPage) error {
	found, err := c.Rejected.List(r.Context(), who, filter)
	if err != nil {
		return err
	}
	list := httpapi.NewList(r, found, pageSize, func(last ingest.Rejected) any { return postgres.KeyCode{Key: last.Key, Code: string(last.Code)} })
	page.Pager = ui.NewPager(r, list.NextCursor)
	for _, one := range list.Items {
		key, known := c.Directory.Key(who.Organization, one.Key)
		if !known {
			key = identity.Key{ID: one.Key, Name: one.Key}
		}
		page.Rejected = append(page.Rejected, shownRejected{one, key, ui.NewMoment(one.LastAt, c.Clock())})
	}
	return nil
}
