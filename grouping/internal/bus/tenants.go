package bus

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/erasure"
)

// ConsumeTenants begins erasures, and takes groups and mail from members
// who are gone, in the transaction that moves the positions.
func ConsumeTenants(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := erasure.Consume(ctx, tx, records); err != nil {
		return err
	}
	facts, err := erasure.RemovedMembers(records)
	if err != nil || len(facts) == 0 {
		return err
	}
	removed := make([]postgres.RemovedMember, len(facts))
	for i, m := range facts {
		removed[i] = postgres.RemovedMember{Organization: m.Organization, ID: m.Member, At: m.RemovedAt}
	}
	if err := postgres.ForgetOwners(ctx, tx, removed); err != nil { // first: then nothing more is assigned to them
		return err
	}
	changed, err := postgres.Unassign(ctx, tx, removed)
	if err != nil {
		return err
	}
	if err := postgres.ForgetRecipients(ctx, tx, removed); err != nil {
		return err
	}
	return Announce(ctx, tx, changed)
}
