package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/ui"
)

// shownActivity is a decision as the page shows it.
type shownActivity struct {
	At        time.Time
	Who, Did  string
	Note      []grouping.Span
	Unknown   []string
	Other     string // the address of the other group; empty: none, or several
	Regressed bool
}

func (c *console) showActivity(r *http.Request, found []postgres.Activity) (shown []shownActivity) {
	members := c.members(r)
	for _, a := range found {
		s := shownActivity{At: a.At, Who: c.who(r, a.By.ID, a.By.Name), Unknown: a.Unknown, Regressed: a.Kind == grouping.WasRegressed}
		switch a.Kind {
		case grouping.WasResolved:
			s.Did = "resolved it" + resolvedIn(a.Resolution)
		case grouping.WasIgnored:
			s.Did = "ignored it" + ignoredUntil(a.Until)
		case grouping.WasReopened:
			s.Did = cmp.Or(a.Reason, "opened it again")
		case grouping.WasUnignored:
			s.Did = cmp.Or(a.Reason, "no longer ignored it")
		case grouping.WasRegressed, grouping.WasSpiking, grouping.WasQuiet:
			s.Did = a.Reason
		case grouping.WasAssigned:
			s.Did = c.assignedTo(r, a)
		case grouping.WasNoted:
			s.Did, s.Note = "wrote", noteOf(a, members)
		case grouping.WasLinked:
			s.Did = "linked it to " + a.Link.Name()
		case grouping.WasUnlinked:
			s.Did = "removed the link to " + a.Link.Name()
		case grouping.WasMerged, grouping.WasUnmerged, grouping.WasSplit:
			if s.Did = mergedOrSplit(a.Decision); a.By.ID == "" && a.Reason != "" {
				s.Did = a.Reason
			}
			if other := cmp.Or(a.Into, a.From); other != "" {
				s.Other = groupsPath + "/" + other
			}
		}
		shown = append(shown, s)
	}
	return shown
}

// noteOf is a note with its mentions of members who are there still. What
// several were called when it was written mentions none of them.
func noteOf(a postgres.Activity, members []grouping.Member) []grouping.Span {
	mentioned := slices.DeleteFunc(slices.Clone(members), func(m grouping.Member) bool { return !slices.Contains(a.Mentions, m.ID) })
	spans, _ := grouping.SpansOf(a.Note, mentioned)
	for i, s := range spans {
		if slices.Contains(a.Unknown, strings.TrimPrefix(s.Text, "@")) {
			spans[i].Member = ""
		}
	}
	return spans
}

// mergedOrSplit says how groups were merged or split.
func mergedOrSplit(d grouping.Decision) string {
	n := fmt.Sprintf("%d groups", len(d.Groups))
	if len(d.Groups) == 1 {
		n = "a group"
	}
	switch {
	case d.Into != "" && d.Kind == grouping.WasMerged:
		return "merged it into another group"
	case d.From != "":
		return "took it out of another group"
	case d.Into != "":
		return "split errors off, as another group from then on"
	case d.Kind == grouping.WasMerged:
		return "merged " + n + " into it"
	case d.Kind == grouping.WasUnmerged:
		return "took " + n + " out of it"
	}
	return "split errors off from a group that was merged into it"
}

func resolvedIn(in grouping.Resolution) string {
	if in.Next {
		known := slices.Compact(slices.Sorted(maps.Values(in.After)))
		return " in the release after " + strings.Join(known, ", ")
	}
	if in.Release != "" {
		return " in " + in.Release
	}
	return ""
}

// ignoredUntil says what ends it, whichever comes first.
func ignoredUntil(u grouping.Until) string {
	var ends []string
	if !u.At.IsZero() {
		ends = append(ends, ui.Instant(u.At))
	}
	switch {
	case u.Count == 1:
		ends = append(ends, "it happens again")
	case u.Count > 1:
		ends = append(ends, "it happens "+ui.Count(u.Count)+" times")
	}
	switch {
	case u.Users == 1:
		ends = append(ends, "it affects a user")
	case u.Users > 1:
		ends = append(ends, "it affects "+ui.Count(u.Users)+" users")
	}
	if len(ends) == 0 {
		return ""
	}
	words := " until " + strings.Join(ends, " or ")
	if name := groups.SpanName(u.Per); name != "" {
		words += " within one " + name
	}
	return words
}

// assignedTo says to whom a group was assigned, and why if nobody did.
func (c *console) assignedTo(r *http.Request, a postgres.Activity) string {
	did := "assigned it to "
	if a.By.ID == "" {
		did = "It is assigned to "
	}
	if did += cmp.Or(c.who(r, a.Assignee.ID, a.Assignee.Name), "nobody"); a.Reason != "" {
		did += ". " + a.Reason
	}
	return did
}
