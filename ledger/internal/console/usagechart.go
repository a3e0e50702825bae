package console

import (
	"net/http"
	"slices"
	"time"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// chartUses is the most sums that a chart reads.
const chartUses = 5000

// views are the dimensions of charts.
var views = []postgres.Dimension{postgres.ByProject, postgres.ByKey, postgres.ByEnvironment, postgres.ByOutcome}

// A view is a link to the usage by another dimension.
type view struct {
	Text, Href string
	Current    bool
}

// A usageView is a period by day, or a day by hour.
type usageView struct {
	by  postgres.Dimension
	day time.Time // zero: the period
}

func usageViewOf(r *http.Request) (v usageView, err error) {
	query := r.URL.Query()
	v.by = postgres.Dimension(query.Get("by"))
	if !query.Has("by") {
		v.by = postgres.ByProject
	}
	if !slices.Contains(views, v.by) {
		return v, httpapi.Invalid("?by", httpapi.CodeInvalidRequest, "Usage can't be shown by that.", "Use project, key, environment or outcome.")
	}
	if text := query.Get("day"); text != "" {
		if v.day, err = time.Parse(time.DateOnly, text); err != nil {
			return v, httpapi.Invalid("?day", httpapi.CodeInvalidRequest, "That is no day.", "Use a day such as 2026-11-20.")
		}
	}
	return v, nil
}

// span returns a view's part of a period and the starts of its columns.
func (v usageView) span(period calendar.Period) (bucket postgres.Bucket, starts []time.Time, end time.Time) {
	bucket, at, end, step := postgres.ByDay, period.Start, period.End, 24*time.Hour
	if !v.day.IsZero() {
		bucket, at, end, step = postgres.ByHour, v.day, v.day.AddDate(0, 0, 1), time.Hour
	}
	for ; at.Before(end); at = at.Add(step) {
		starts = append(starts, at)
	}
	return bucket, starts, end
}

// chart draws a view of a period of the reader's organization.
func (c *console) chart(r *http.Request, v usageView, period calendar.Period) (chart, error) {
	bucket, starts, end := v.span(period)
	query := postgres.UsageQuery{Bucket: bucket, By: map[postgres.Dimension]bool{v.by: true}, From: starts[0], To: end, Limit: chartUses}
	uses, err := c.Services.Usage.List(r.Context(), identity.FromContext(r.Context()).Organization, query)
	if err != nil {
		return chart{}, err
	}
	drawn := newChart(uses, v.by, starts, func(id string) string { return c.nameOf(v.by, id) })
	drawn.Cut = len(uses) == chartUses
	for i := range drawn.Columns {
		if bucket == postgres.ByDay {
			drawn.Columns[i].Hours = hoursAddress(v.by, drawn.Columns[i].At)
		}
	}
	return drawn, nil
}

// nameOf returns a name in a dimension.
func (c *console) nameOf(by postgres.Dimension, id string) string {
	switch {
	case id == "":
		return "not known"
	case by == postgres.ByProject:
		if name := c.Directory.Name(id); name != "" {
			return name
		}
	case by == postgres.ByOutcome:
		return outcomeText(id)
	}
	return id
}

func outcomeText(outcome string) string {
	switch outcome {
	case "accepted":
		return "accepted"
	case "rejected":
		return "rejected: not valid"
	case "rate_limited":
		return "too many at once"
	case "quota_exceeded":
		return "over the allowance"
	case "overloaded":
		return "to be sent again"
	}
	return outcome
}

// views returns the links to all dimensions, for the same day.
func (v usageView) views() []view {
	links := make([]view, len(views))
	for i, by := range views {
		href := "/console/usage?by=" + string(by)
		if !v.day.IsZero() {
			href = hoursAddress(by, v.day)
		}
		links[i] = view{Text: "by " + string(by), Href: href, Current: by == v.by}
	}
	return links
}
