package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
)

// saveEvents puts the events of new groups into
// the outbox, in an order that all workers keep.
func saveEvents(ctx context.Context, tx pgx.Tx, created []postgres.NewGroup) error {
	facts := make([]outbox.Fact, len(created))
	for i, group := range created {
		facts[i] = outboxFact(group)
	}
	slices.SortFunc(facts, func(a, b outbox.Fact) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.ID, b.ID))
	})
	return outbox.Save(ctx, tx, facts)
}

// outboxFact is a group's creation in the outbox.
func outboxFact(g postgres.NewGroup) outbox.Fact {
	body, err := json.Marshal(contract.ErrorGroupCreated{
		ErrorGroup: contract.ErrorGroup{Organization: g.Organization, Project: g.Project, Group: g.ID, Title: g.Title, Type: g.Type, Culprit: g.Culprit},
		FirstSeen:  g.FirstSeen.UTC(), Entry: g.Entry, Environment: g.Environment, Release: g.Release, Cause: g.Cause,
		Addressed: contract.Addressed{Path: errorsPath + "/" + g.ID},
	})
	if err != nil {
		panic("BUG: cannot encode an event: " + err.Error())
	}
	// An expired group that returns is created again.
	id := g.ID + "/created/" + g.FirstSeen.UTC().Format(time.DateOnly)
	return outbox.Fact{Organization: g.Organization, ID: id, Type: contract.TypeErrorGroupCreated, At: g.FirstSeen, Body: body}
}

// factTypes are the types of decisions that others learn of.
var factTypes = map[grouping.Kind]string{ // bounded by the kinds
	grouping.WasResolved: contract.TypeErrorGroupResolved, grouping.WasReopened: contract.TypeErrorGroupReopened,
	grouping.WasIgnored: contract.TypeErrorGroupIgnored, grouping.WasUnignored: contract.TypeErrorGroupUnignored,
	grouping.WasRegressed: contract.TypeErrorGroupRegressed, grouping.WasAssigned: contract.TypeErrorGroupAssigned,
	grouping.WasSpiking: contract.TypeErrorGroupSpiking, grouping.WasQuiet: contract.TypeErrorGroupQuiet,
	grouping.WasMerged: contract.TypeErrorGroupMerged, grouping.WasUnmerged: contract.TypeErrorGroupUnmerged,
	grouping.WasSplit: contract.TypeErrorGroupSplit,
}

// Announce puts the events of decisions into the outbox, in their order. It
// ends a transaction, as its writers take turns.
func Announce(ctx context.Context, tx pgx.Tx, changes []postgres.Change) error {
	var facts []outbox.Fact
	for _, c := range changes {
		if fact, announced := changeFact(c); announced {
			facts = append(facts, fact)
		}
	}
	if fact, any := mentionFact(changes); any {
		facts = append(facts, fact)
	}
	if err := outbox.Save(ctx, tx, facts); err != nil {
		return err
	}
	return Report(ctx, tx, reports(changes))
}

func changeFact(c postgres.Change) (fact outbox.Fact, announced bool) {
	name, announced := factTypes[c.Decision.Kind]
	if !announced || len(c.Decision.Groups) > 0 { // each of those groups has a fact
		return fact, false
	}
	g, d := c.Group, c.Decision
	body, err := json.Marshal(contract.ErrorGroupChanged{
		ErrorGroup: groupOf(c), Status: string(g.Status), Before: string(c.Before), Version: g.Version, Assignee: g.State.Assignee.ID,
		Release: cmp.Or(d.Release, d.Resolution.Release), NextRelease: d.Resolution.Next, Environment: d.Environment,
		Into: d.Into, From: d.From, Cause: d.Reason, Actor: c.By.ID, At: d.At.UTC(),
		ErrorSpike: contract.ErrorSpike{Hour: d.Spike.Hour, Count: d.Spike.Count, Expected: d.Spike.Expected},
		Links:      linksOf(g.State.Links), Addressed: addressed(g.ID, g.State.Links, d.Kind),
	})
	if err != nil {
		panic("BUG: cannot encode an event: " + err.Error())
	}
	return outbox.Fact{Organization: c.Organization, ID: decisionID(c), Type: name, At: d.At, Body: body}, true
}

// mentionFact tells those whom the note of some decisions mentions, but not
// who wrote it. Those of one request have the same note.
func mentionFact(changes []postgres.Change) (fact outbox.Fact, any bool) {
	noted := slices.Collect(func(yield func(postgres.Change) bool) {
		for _, c := range changes {
			if len(c.Decision.Mentions) > 0 && !yield(c) {
				return
			}
		}
	})
	if len(noted) == 0 {
		return fact, false
	}
	c, g := noted[0], noted[0].Group
	members := slices.DeleteFunc(slices.Clone(c.Decision.Mentions), func(member string) bool { return member == c.By.ID })
	if len(members) == 0 {
		return fact, false
	}
	body, err := json.Marshal(contract.ErrorGroupMentioned{
		ErrorGroup: groupOf(c), Note: c.Decision.Note, Members: members, More: int64(len(noted) - 1), Actor: c.By.ID, ActorName: c.By.Name, At: c.Decision.At.UTC(),
		Addressed: contract.Addressed{MailTo: &contract.MailTo{Members: members}, Path: errorsPath + "/" + g.ID},
	})
	if err != nil {
		panic("BUG: cannot encode an event: " + err.Error())
	}
	return outbox.Fact{Organization: c.Organization, ID: decisionID(c), Type: contract.TypeErrorGroupMentioned, At: c.Decision.At, Body: body}, true
}

// groupOf is the group of a change.
func groupOf(c postgres.Change) contract.ErrorGroup {
	return contract.ErrorGroup{
		Organization: c.Organization, Project: c.Group.Project, Group: c.Group.ID, Title: c.Group.Title, Type: c.Group.Type, Culprit: c.Group.Culprit,
	}
}

// decisionID identifies a decision: its number is used again once its group
// has expired and come back.
func decisionID(c postgres.Change) string {
	return c.Group.ID + "/" + strconv.FormatInt(c.Group.Version, 10) + "/" + c.Decision.At.UTC().Format(time.DateOnly)
}

func linksOf(links []grouping.Link) (addresses []string) {
	for _, link := range links {
		addresses = append(addresses, link.URL)
	}
	return addresses
}

// addressed has the webhooks of links told that a group is resolved, or comes back.
func addressed(group string, links []grouping.Link, kind grouping.Kind) contract.Addressed {
	to := contract.Addressed{Path: errorsPath + "/" + group}
	for _, link := range links {
		if link.Webhook != "" && kind.TellsLinks() && !slices.Contains(to.Webhooks, link.Webhook) {
			to.Webhooks = append(to.Webhooks, link.Webhook)
		}
	}
	return to
}
