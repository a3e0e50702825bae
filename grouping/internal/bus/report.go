package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/outbox"
)

// Report puts changes that somebody made into the outbox, for the audit.
// Like Announce it ends a transaction.
func Report(ctx context.Context, tx pgx.Tx, changes []groups.Change) error {
	facts := make([]outbox.Fact, len(changes))
	for i, c := range changes {
		kind, _, _ := strings.Cut(c.Action, ".")
		if c.Target == c.Project {
			kind = "project"
		}
		body, err := json.Marshal(contract.ChangeReported{
			Organization: c.Organization, Project: c.Project, Action: c.Action, Target: contract.ReportedTarget{Kind: kind, ID: c.Target, Name: c.Name},
			Actor: c.By.ID, Request: c.By.Request, Address: c.By.Address,
			Client: httpapi.ClipUserAgent(c.By.Client, contract.MaxClient), Before: contract.Reported(c.Before), After: contract.Reported(c.After), At: c.At,
		})
		if err != nil {
			panic("BUG: cannot encode an event: " + err.Error())
		}
		id := fmt.Sprintf("%s/%s/%d", cmp.Or(c.First, c.Target), c.Action, c.At.UnixMicro())
		facts[i] = outbox.Fact{Organization: c.Organization, ID: id, Type: contract.TypeErrorsChangeReported, At: c.At, Body: body}
	}
	return outbox.Save(ctx, tx, facts)
}

// reports are what the audit is told of decisions by people and programs: one
// change for all groups of a project of which the same was decided at once.
func reports(changes []postgres.Change) (reported []groups.Change) {
	type decided struct {
		project string
		kind    grouping.Kind
		after   string
	}
	all, order := map[decided][]postgres.Change{}, []decided(nil) // bounded by the changes
	for _, c := range changes {
		if c.By.ID == "" || followsFromAnother(c.Decision) {
			continue
		}
		after, err := json.Marshal(afterOf(c.Decision))
		if err != nil {
			panic("BUG: cannot encode what was decided: " + err.Error())
		}
		of := decided{c.Group.Project, c.Decision.Kind, string(after)}
		if all[of] == nil {
			order = append(order, of)
		}
		all[of] = append(all[of], c)
	}
	for _, of := range order {
		reported = append(reported, reportOf(all[of]))
	}
	return reported
}

// followsFromAnother reports whether the decision about another group, the head
// or that which was split, says it all.
func followsFromAnother(d grouping.Decision) bool {
	switch d.Kind {
	case grouping.WasMerged, grouping.WasUnmerged:
		return len(d.Groups) == 0
	case grouping.WasSplit:
		return d.Like == ""
	}
	return false
}

const shownGroups = 20 // of a report about many

func reportOf(changes []postgres.Change) groups.Change {
	c, g := changes[0], changes[0].Group
	report := groups.Change{
		Organization: c.Organization, Project: g.Project, Action: "error_group." + string(c.Decision.Kind), By: c.By,
		Target: g.ID, Before: groups.Fields{}, After: afterOf(c.Decision), At: c.Decision.At, // without the title, which may name people
	}
	if len(changes) > 1 {
		report.First, report.Target = g.ID, g.Project
		ids := make([]string, len(changes))
		for i := range changes {
			ids[i] = changes[i].Group.ID
		}
		report.After["error_groups"] = counted(ids)
		return report
	}
	report.After["version"] = strconv.FormatInt(g.Version, 10)
	if c.Before != g.Status {
		report.Before["status"], report.After["status"] = string(c.Before), string(g.Status)
	}
	if c.Decision.Kind == grouping.WasAssigned {
		report.Before["assignee"] = nameOf(c.Assignee)
	}
	return report
}

// counted is how many there are, and the first of them.
func counted(ids []string) string {
	shown := ids[:min(len(ids), shownGroups)]
	text := fmt.Sprintf("%d: %s", len(ids), strings.Join(shown, ", "))
	if len(shown) < len(ids) {
		text += ", …"
	}
	return text
}

// afterOf is what a decision says, without notes: those are only for who reads errors.
func afterOf(d grouping.Decision) groups.Fields {
	said := groups.Fields{
		"release": d.Resolution.Release, "link": linkOf(d.Link.URL), "into": d.Into,
	}
	if d.Kind == grouping.WasAssigned {
		said["assignee"] = nameOf(d.Assignee)
	}
	if len(d.Mentions) > 0 {
		said["mentions"] = strings.Join(d.Mentions, ", ")
	}
	if d.Resolution.Next {
		said["release"] = "the next one"
	}
	if !d.Until.At.IsZero() {
		said["until"] = d.Until.At.UTC().Format(time.RFC3339)
	}
	if d.Until.Count > 0 {
		said["until_errors"] = strconv.FormatInt(d.Until.Count, 10)
	}
	if d.Until.Users > 0 {
		said["until_users"] = strconv.FormatInt(d.Until.Users, 10)
	}
	if d.Until.Per > 0 {
		said["within"] = groups.SpanName(d.Until.Per)
	}
	if len(d.Groups) > 0 {
		said["error_groups"] = counted(d.Groups)
	}
	return said
}

func nameOf(assignee grouping.Assignee) string { return cmp.Or(assignee.Name, assignee.ID, "nobody") }

// linkOf is an address without what may be a secret.
func linkOf(address string) string {
	end := strings.IndexAny(address, "?#")
	if end < 0 {
		return address
	}
	return address[:end]
}
