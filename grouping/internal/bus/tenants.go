package bus

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
)

// ConsumeTenants begins erasures, and takes groups from members who are
// gone, in the transaction that moves the positions.
func ConsumeTenants(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := erasure.Consume(ctx, tx, records); err != nil { // acts as the system from here on
		return err
	}
	var changed []postgres.Change
	for _, record := range records {
		if record.Header(contract.HeaderType) != contract.TypeMemberRemoved || len(record.Value) == 0 {
			continue
		}
		var removed contract.MemberRemoved
		if err := json.Unmarshal(record.Value, &removed); err != nil {
			return bus.PermanentRecord(record, fmt.Errorf("cannot read who was removed: %w", err))
		}
		some, err := postgres.Unassign(ctx, tx, removed.Organization, removed.Member, removed.RemovedAt)
		if err != nil {
			return err
		}
		changed = append(changed, some...)
	}
	return Announce(ctx, tx, changed)
}
