package unitofwork

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// room refuses decisions beyond ledger.MaxDecisions. One lookup by
// number is enough, as they are stored in order of time.
func room(ctx context.Context, tx pgx.Tx, o ledger.Organization, more int, at time.Time) error {
	return o.RoomForDecisions(more, at, func(number int64) (time.Time, error) { return postgres.WhenDecided(ctx, tx, o.ID, number) })
}
