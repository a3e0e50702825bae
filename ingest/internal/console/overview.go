package console

import (
	"net/http"
	"net/url"
	"time"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// The chart of an overview.
const (
	overviewSpan = 24 * time.Hour
	overviewBar  = 30 * time.Minute
)

// overviewPart is what the overview of a project shows of its entries.
type overviewPart struct {
	Href string // of the entries
	Any  string // of those of any time

	Rejected string // the address of what was rejected
	Entries  int64
	Partial  bool // at least so many
	Levels   []levelCount
	Chart    *ui.Histogram // nil: there is none
}

// levelCount is how many entries have a level.
type levelCount struct {
	Level ui.Level
	Count int64
	Href  string
}

// showOverview answers with the part of a project's overview.
func (c *console) showOverview(w http.ResponseWriter, r *http.Request) error {
	project := r.URL.Query().Get("project")
	logs := r.Clone(r.Context())
	logs.URL = &url.URL{Path: "/console/logs", RawQuery: url.Values{"project": {project}, "last": {"24h"}}.Encode()}
	now := c.Clock()
	from, to := ingest.InstantOf(now.Add(-overviewSpan).Truncate(overviewBar).Add(overviewBar)), ingest.InstantOf(now.Add(skew))
	count := ingest.Count{Search: ingest.Search{Project: project, From: &from, To: &to}, Every: overviewBar, MaxBytes: chartBytes}
	counted, err := c.Service.Count(r.Context(), identity.FromContext(r.Context()), count, 0)
	if err != nil {
		return ingesthttp.NotFound(err, count.Search)
	}
	part := overviewPart{
		Href: logs.URL.String(), Any: ui.With(logs, "last", ui.AnyTime), Rejected: rejectedOf(project),
		Entries: counted.Levels.Sum(), Partial: counted.From != nil,
	}
	byName := counted.Levels.ByName()
	for _, level := range []string{"fatal", "error", "warn", "info", "debug"} {
		if n := byName[level]; n > 0 {
			part.Levels = append(part.Levels, levelCount{ui.Level(level), n, ui.With(logs, "level", level)})
		}
	}
	if part.Entries > 0 {
		buckets := make([]map[string]int64, len(counted.Buckets))
		for i, levels := range counted.Buckets {
			buckets[i] = levels.ByName()
		}
		part.Chart = ui.NewHistogram(logs, "entries", time.Unix(count.FirstBucket(), 0), count.Every, nil, buckets)
	}
	c.pages.WritePart(w, "overview", part)
	return nil
}
