package unitofwork

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// room refuses decisions beyond ledger.MaxDecisions. One look by its number is
// enough, for they are kept in the order of their instants.
func room(ctx context.Context, tx pgx.Tx, o ledger.Organization, more int, at time.Time) error {
	return o.RoomForDecisions(more, at, func(number int64) (time.Time, error) { return postgres.WhenDecided(ctx, tx, o.ID, number) })
}
