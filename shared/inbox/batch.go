package inbox

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// HasWhole reports whether a batch of an organization, as which tx acts, is
// there whole and had its effect. It is false as well once the inbox has
// dropped its day.
func HasWhole(ctx context.Context, tx pgx.Tx, organization string, batch uuid.UUID) (whole bool, err error) {
	days, err := pg.Days(ctx, tx, "inbox")
	if err == nil {
		err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM inbox WHERE day = ANY($1::date[]) AND batch = $2)
			AND NOT EXISTS (SELECT FROM inbox_held WHERE organization = $3 AND batch = $2)`, days, batch, organization).Scan(&whole)
	}
	if err != nil {
		return false, fmt.Errorf("cannot look for the batch %s: %w", batch, err)
	}
	return whole, nil
}
