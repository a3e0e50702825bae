package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A BalanceSnapshot is an organization's book of the period at an instant, if
// any, and how far the log is booked.
type BalanceSnapshot struct {
	At           time.Time
	Organization ledger.Organization
	Found        bool // the organization exists
	Books        []ledger.Book
	Applied      contract.Positions
	Verified     contract.Positions // ranges below are checked
	Accepted     map[int]time.Time  // acceptance of each partition's last booked entry
}

// LoadBalanceSnapshot reads a BalanceSnapshot in one round trip.
func LoadBalanceSnapshot(ctx context.Context, tx pgx.Tx, organization pg.Organization, at time.Time) (s BalanceSnapshot, err error) {
	var batch pgx.Batch
	s.Queue(&batch, organization, at)
	err = tx.SendBatch(ctx, &batch).Close()
	return s, err
}

// Queue adds the reads of a BalanceSnapshot to a batch.
func (s *BalanceSnapshot) Queue(batch *pgx.Batch, organization pg.Organization, at time.Time) {
	s.At = at
	batch.Queue(selectOrganizations+`WHERE o.organization = $1`, organization).Query(func(rows pgx.Rows) error {
		known, err := collectOrganizations(rows)
		s.Organization, s.Found = known[string(organization)]
		return err
	})
	batch.Queue(`SELECT `+bookColumns+` FROM books JOIN organizations o USING (organization)
		WHERE organization = $1 AND period_start <= coalesce(o.clock, $2) AND period_end > coalesce(o.clock, $2)`, organization, at).Query(
		func(rows pgx.Rows) error {
			return forEachBook(rows, func(b orgBook) { s.Books = append(s.Books, b.book) })
		})
	batch.Queue(selectPositions, contract.GroupLedger, contract.TopicLogs).Query(func(rows pgx.Rows) (err error) {
		s.Applied, err = collectPositions(rows)
		return err
	})
	batch.Queue(selectVerified).Query(func(rows pgx.Rows) (err error) {
		s.Verified, err = collectPositions(rows)
		return err
	})
	batch.Queue(selectAccepted, contract.GroupLedger, contract.TopicLogs).Query(func(rows pgx.Rows) (err error) {
		s.Accepted, err = collectAccepted(rows)
		return err
	})
}
