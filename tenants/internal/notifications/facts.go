package notifications

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// Facts makes deliveries of other modules' facts.
type Facts struct {
	Clock func() time.Time
	Mail  bool // whether mail is sent
}

// Deliver queues a fact for each subscribed webhook and mail, unless
// its project or organization is deleted. tx then acts as the system.
func (f Facts) Deliver(ctx context.Context, tx pgx.Tx, facts []tenants.Fact) error {
	if len(facts) == 0 {
		return nil
	}
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	gone, err := erasure.FindDeleted(ctx, tx, organizationsOf(facts))
	if err != nil {
		return err
	}
	var batch pgx.Batch
	for _, fact := range facts {
		if gone.Has(fact.Organization, fact.Project) {
			continue
		}
		if err := f.queue(&batch, fact); err != nil {
			return err
		}
	}
	return tx.SendBatch(ctx, &batch).Close()
}

func (f Facts) queue(batch *pgx.Batch, fact tenants.Fact) error {
	body, err := json.Marshal(webhook.Payload{Type: fact.Name, Timestamp: fact.Time, Data: fact.Data})
	if err != nil {
		return err
	}
	now := f.Clock().UTC()
	batch.Queue(addFact, fact.Organization, fact.ID, fact.Project, fact.Name, string(body), now, fact.Published, failureOff)
	if f.Mail && mailTextOf(fact.Name) != nil && now.Sub(fact.Published) < mailedWithin {
		batch.Queue(addMails, fact.Organization, fact.ID, fact.Project, fact.Name, string(body), now, mailKindOf(fact.Name))
	}
	return nil
}

func organizationsOf(facts []tenants.Fact) (ids []string) {
	for _, fact := range facts {
		ids = append(ids, fact.Organization)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
