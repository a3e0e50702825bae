package console

import (
	"net/http"
	"net/url"
	"time"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// overviewPart is what the overview of a project shows of its errors.
type overviewPart struct {
	postgres.Overview
	Href, HrefNew, HrefAll string // of unresolved groups, the newest first, and of all
	Newest                 []newGroup
	Errors                 int64 // of the chart
	Chart                  *ui.Histogram
}

// newGroup is a group with how long it is known.
type newGroup struct {
	shownGroup
	Age ui.Moment
}

// showOverview answers with the part of a project's overview.
func (p *groupPages) showOverview(w http.ResponseWriter, r *http.Request) error {
	organization, project := identity.FromContext(r.Context()).Organization, r.URL.Query().Get("project")
	if !p.directory.Owns(organization, project) {
		return httpapi.NotFound("project", project)
	}
	found, err := p.service.Groups.Overview(r.Context(), organization, project)
	if err != nil {
		return err
	}
	list := r.Clone(r.Context())
	list.URL = &url.URL{Path: groupsPath, RawQuery: url.Values{"project": {project}}.Encode()}
	part := overviewPart{
		Overview: found.Overview, Href: list.URL.String(), HrefNew: ui.With(list, "sort", string(postgres.ByFirstSeen)), HrefAll: ui.With(list, "status", allStates),
	}
	for _, group := range found.Newest {
		part.Newest = append(part.Newest, newGroup{p.show(r, group), ui.NewMoment(group.FirstSeen, p.clock())})
	}
	buckets := make([]map[string]int64, len(found.Hours))
	for hour, n := range found.Hours {
		buckets[hour] = map[string]int64{"error": n}
		part.Errors += n
	}
	if part.Errors > 0 {
		part.Chart = ui.NewHistogram(list, "errors", found.From, time.Hour, nil, buckets)
	}
	if part.Chart != nil && found.AtLeast {
		part.Chart.Label = "At least " + part.Chart.Label
		part.Chart.Note = "At least so many: of the " + ui.Count(postgres.MostSummed) + " groups seen last."
	}
	p.pages.WritePart(w, "overview", part)
	return nil
}

// Many says a count of groups that has a bound.
func (overviewPart) Many(n int64) string {
	if n > postgres.MostCounted {
		return "over " + ui.Count(postgres.MostCounted)
	}
	return ui.Count(n)
}
