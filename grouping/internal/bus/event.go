package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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
		Organization: g.Organization, Project: g.Project, Group: g.ID, Title: g.Title, Type: g.Type, Culprit: g.Culprit, FirstSeen: g.FirstSeen.UTC(),
	})
	if err != nil {
		panic("BUG: cannot encode an event: " + err.Error())
	}
	// An expired group that returns is created again.
	id := g.ID + "/created/" + g.FirstSeen.UTC().Format(time.DateOnly)
	return outbox.Fact{Organization: g.Organization, ID: id, Type: contract.TypeErrorGroupCreated, At: g.FirstSeen, Body: body}
}
