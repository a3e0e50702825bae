package booking

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// Count adds the requests that ingest counted to the usage, each tally
// once. Tallies must be valid.
func (s *Service) Count(ctx context.Context, tx pgx.Tx, booked time.Time, tallies []ledger.Tally) error {
	if len(tallies) == 0 {
		return nil
	}
	fresh, err := postgres.TakeTallies(ctx, tx, booked, tallies)
	if err != nil {
		return fmt.Errorf("cannot find the tallies already counted: %w", err)
	}
	var uses []ledger.Use
	for _, tally := range fresh {
		uses = append(uses, tally.Counted()...)
	}
	if err := postgres.SaveUses(ctx, tx, uses); err != nil {
		return fmt.Errorf("cannot count requests: %w", err)
	}
	return nil
}
