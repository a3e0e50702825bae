package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
)

// saveFacts says which groups were created, in an order that all workers keep.
func saveFacts(ctx context.Context, tx pgx.Tx, changes []*change) error {
	var facts []outbox.Fact
	for _, ch := range changes {
		if ch.created {
			facts = append(facts, outbox.Fact{
				Organization: ch.Organization, ID: ch.group + "/created", Type: contract.TypeErrorGroupCreated, At: ch.First, Body: createdBody(ch),
			})
		}
	}
	if len(facts) == 0 {
		return nil
	}
	slices.SortFunc(facts, func(a, b outbox.Fact) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.ID, b.ID))
	})
	var batch pgx.Batch
	outbox.Queue(&batch, facts)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("cannot save %d facts: %w", len(facts), err)
	}
	return nil
}

func createdBody(ch *change) []byte {
	body, err := json.Marshal(contract.ErrorGroupCreated{
		Organization: ch.Organization, Project: ch.Project, Group: ch.group, Title: storable(ch.about.Title),
		Type: storable(ch.about.Type), Culprit: storable(ch.about.Culprit), FirstSeen: ch.First.UTC(),
	})
	if err != nil {
		panic("BUG: cannot encode a fact: " + err.Error())
	}
	return body
}
