package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// listedGroup is a group as a row of the list.
type listedGroup struct {
	shownGroup
	recently
}

// recently is what a group did of late.
type recently struct {
	Bars  []bar
	Text  string // what the bars show
	Trend string
	Users int64
	Last  ui.Moment
	Age   ui.Moment
}

// A bar of a sparkline, which is sparkHeight high.
type bar struct{ X, Y, Height string }

const (
	sparkHeight = 24
	sparkStep   = 5
)

func (p *groupPages) recently(g postgres.Group, recent *postgres.Recent) recently {
	sum, most := recent.Hours.Sum(), int64(1)
	for _, n := range recent.Hours {
		most = max(most, n)
	}
	shown := recently{
		Users: recent.Users, Last: ui.NewMoment(g.LastSeen, p.clock()), Age: ui.NewMoment(g.FirstSeen, p.clock()), Trend: trend(sum, recent.Before),
		Text: fmt.Sprintf("%s in 24 hours, at most %s in one; %s in the 24 before", ui.Count(sum), ui.Count(most*min(sum, 1)), ui.Count(recent.Before)),
	}
	for hour, n := range recent.Hours {
		if height := float64(n) / float64(most) * sparkHeight; n > 0 {
			height = max(height, 1)
			shown.Bars = append(shown.Bars, bar{strconv.Itoa(hour * sparkStep), decimal(sparkHeight - height), decimal(height)})
		}
	}
	return shown
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

// trend compares a day with the one before.
func trend(now, before int64) string {
	switch {
	case now == before:
		return ""
	case before == 0:
		return "new"
	case now >= 2*before:
		return fmt.Sprintf("×%.0f", float64(now)/float64(before))
	}
	return fmt.Sprintf("%+.0f %%", 100*float64(now-before)/float64(before))
}

// shownCounts is how often a group happened, to whom and where.
type shownCounts struct {
	Chart    *ui.Histogram
	Spans    []ui.Link
	Sum      int64
	Users    int64
	UsersMay string // how exact that is
	Tags     []shownTag
	Releases []shownRelease
	Days     time.Time // tags and users are those of whole days, from this one; zero: all of them are in the chart
}

// shownTag is how errors are spread over the values of a tag.
type shownTag struct {
	Name   grouping.Tag
	Shares []shownShare
}

type shownShare struct {
	Name    string // empty: others
	Count   int64
	Percent string
}

// shownRelease is one that came while errors were counted.
type shownRelease struct {
	Name, Environment string
	At                time.Time
}

// counts are those of the days or hours that the page is asked for. It
// returns the newest release of the group's package as well.
func (p *groupPages) counts(r *http.Request, of groups.Detail) (shown shownCounts, newest string, err error) {
	hours := r.URL.Query().Get("by") == "hour"
	now := p.clock().UTC()
	every, to := 24*time.Hour, now.Truncate(24*time.Hour).AddDate(0, 0, 1)
	from := to.AddDate(0, 0, -grouping.DaysKept)
	if hours {
		shown.Days = now.Truncate(time.Hour).Add(-23 * time.Hour)
		every, to, from = time.Hour, now.Truncate(time.Hour).Add(time.Hour), now.Truncate(time.Hour).Add(-23*time.Hour)
	}
	found, err := p.service.Groups.Count(r.Context(), identity.FromContext(r.Context()), of.Group.ID, from, to.Add(-1))
	if err != nil {
		return shown, "", err
	}
	shown.Users, shown.Tags, shown.Spans = found.Users, showTags(found.Tags), []ui.Link{
		{Text: "24 hours", Href: ui.With(r, "by", "hour"), Current: hours}, {Text: "90 days", Href: ui.With(r, "by", ""), Current: !hours},
	}
	if found.Users > postgres.UsersExact {
		shown.UsersMay = fmt.Sprintf("± %v %%", postgres.UsersError)
	}
	var buckets []map[string]int64
	for _, n := range found.Every(from, to, every) {
		buckets = append(buckets, map[string]int64{"error": n})
		shown.Sum += n
	}
	logs := r.Clone(r.Context())
	logs.URL = &url.URL{Path: "/console/logs", RawQuery: url.Values{"project": {of.Entries.Project}, "q": {of.Entries.Query}}.Encode()}
	shown.Chart = ui.NewHistogram(logs, "errors", from, every, nil, buckets)
	for _, sight := range found.Releases {
		if at := sight.First.Sub(from); at >= 0 && sight.First.Before(to) {
			shown.Releases = append(shown.Releases, shownRelease{sight.Release, sight.Environment, sight.First})
			shown.Chart.Mark(sight.First)
		}
	}
	if n := len(shown.Releases); n > maxReleases {
		shown.Releases = shown.Releases[n-maxReleases:]
	}
	return shown, found.Releases.Newest(of.Group.LastRelease), nil
}

// maxReleases is how many releases a page names, those that came last.
const maxReleases = 10

func showTags(tags [len(grouping.Tags)]grouping.Distribution) (shown []shownTag) {
	for i, of := range tags {
		tag, sum := shownTag{Name: grouping.Tags[i]}, int64(0)
		for _, share := range of {
			sum += share.N
		}
		for _, share := range of {
			tag.Shares = append(tag.Shares, shownShare{share.Name, share.N, decimal(100 * float64(share.N) / float64(sum))})
		}
		if len(of) > 0 {
			shown = append(shown, tag)
		}
	}
	return shown
}
