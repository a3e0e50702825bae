package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/pg"
)

// batchAge exceeds the time between a batch's acceptance and its id.
const batchAge = 5 * time.Second

// IsCharged reports whether an organization was charged for a batch, a
// UUIDv7. It is false for a batch so late that it counts in a later period.
func IsCharged(ctx context.Context, tx pgx.Tx, organization pg.Organization, batch uuid.UUID) (charged bool, err error) {
	named := time.Unix(batch.Time().UnixTime())
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM transfers WHERE `+ofOrganization+` AND effective_at BETWEEN $2 AND $3
		AND source = $4 AND starts_with(event, $5))`,
		customPlan, organization, named.Add(-batchAge), named.Add(batchAge), ledger.FromLogs, batch.String()+"/").Scan(&charged)
	if err != nil {
		return false, fmt.Errorf("cannot look for the batch %s: %w", batch, err)
	}
	return charged, nil
}
