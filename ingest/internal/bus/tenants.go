package bus

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/erasure"
)

// ConsumeTenants begins erasures, and removes what only members saw who are
// gone, in the transaction that moves the positions.
func ConsumeTenants(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := erasure.Consume(ctx, tx, records); err != nil {
		return err
	}
	removed, err := erasure.RemovedMembers(records)
	if err != nil {
		return err
	}
	var organizations, members []string
	for _, member := range removed {
		organizations, members = append(organizations, member.Organization), append(members, member.Member)
	}
	return postgres.DeleteSearchesOf(ctx, tx, organizations, members)
}
