package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/pg"
)

// transferDays are the daily partitions of transfers. A day is folded
// whole: its transfers go into sums by period, and its usage is removed.
type transferDays struct {
	kept  ledger.Retention
	clock func() time.Time
}

func (transferDays) Name() string { return "transfers" }

func (d transferDays) Keeps() string {
	return fmt.Sprintf("%d months, each day a partition", d.kept.Transfers)
}

// foldDay adds up one partition. A late fold keeps no sums for removed books.
const foldDay = `INSERT INTO folded_transfers AS f (organization, period_start, source, reason, from_account, to_account, amount, entries, transfers)
	SELECT organization, period_start, source, reason, from_account, to_account, sum(amount), sum(entries), count(*) FROM %s AS t
	WHERE EXISTS (SELECT FROM books AS b WHERE b.organization = t.organization AND b.period_start = t.period_start)
	GROUP BY 1, 2, 3, 4, 5, 6
	ON CONFLICT (organization, period_start, source, reason, from_account, to_account) DO UPDATE
		SET amount = f.amount + excluded.amount, entries = f.entries + excluded.entries, transfers = f.transfers + excluded.transfers`

// Prune folds the oldest day. Others may read the day meanwhile, none
// may write. Only dropping it locks the whole table, briefly.
func (d transferDays) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	days, err := pg.Days(ctx, tx, "transfers")
	since := d.kept.TransfersSince(d.clock())
	if err != nil || len(days) == 0 || !days[0].Before(since) {
		return 0, false, err
	}
	if err := fold(ctx, tx, days[0]); err != nil {
		return 0, false, err
	}
	return 1, len(days) > 1 && days[1].Before(since), nil
}

func fold(ctx context.Context, tx pgx.Tx, day time.Time) error {
	if err := pg.HoldDay(ctx, tx, "transfers", day); err != nil {
		return err
	}
	partition := pgx.Identifier{pg.DayPartition("transfers", day)}.Sanitize()
	if _, err := tx.Exec(ctx, fmt.Sprintf(foldDay, partition)); err != nil {
		return fmt.Errorf("cannot fold %s: %w", partition, err)
	}
	if err := pg.DropDay(ctx, tx, "transfers", day); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM usage_days WHERE day = $1::date`, day)
	return err
}

func (transferDays) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	days, err := pg.Days(ctx, tx, "transfers")
	if err != nil || len(days) == 0 {
		return time.Time{}, err
	}
	return days[0], nil
}

// HoldDays keeps days from being folded until the transaction ends. It
// must be a snapshot's first statement: one older than a fold would see
// neither transfers nor sums.
func HoldDays(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `LOCK TABLE ONLY transfers IN ACCESS SHARE MODE`)
	return err
}
