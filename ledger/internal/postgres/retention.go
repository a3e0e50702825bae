package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/prune"
)

// Tables returns the ageing tables of the ledger, for a prune.Pruner.
func Tables(clock func() time.Time, kept ledger.Retention, deletions erasure.Retention) []prune.Table {
	return []prune.Table{
		transferDays{kept, clock},
		appliedRanges{clock},
		prune.Rows{
			Table: "usage_hours", Bound: fmt.Sprintf("%d months", kept.Hours), Age: "hour", Before: func() time.Time { return kept.HoursSince(clock()) },
		},
		prune.Rows{
			Table: "links", Bound: fmt.Sprintf("%d months", kept.Hours), Age: "hour", Before: func() time.Time { return kept.HoursSince(clock()) },
			AppendOnly: true,
		},
		prune.Rows{
			Table: "cuts", Bound: "as links, and the one before", Age: "hour", Before: func() time.Time { return kept.HoursSince(clock()) },
			Only:       "t.hour < (SELECT max(hour) FROM cuts c WHERE c.partition = t.partition AND c.hour < $1)", // where the first hour kept begins
			AppendOnly: true,
		},
		prune.Rows{
			Table: "replays", Bound: "as links", Age: "coalesce(hour, 'infinity')", Before: func() time.Time { return kept.HoursSince(clock()) },
		},
		prune.Rows{
			Table: "seals", Bound: fmt.Sprintf("%d months", kept.Books), Age: "hour", Before: func() time.Time { return kept.BooksSince(clock()) },
			Only: "t.root IS NOT NULL",
		},
		prune.Rows{
			Table: "checkpoints", Bound: "8 days, and the newest", Age: "hour", Before: prune.Ago(rangesKept, clock),
			Only: "t.hour < (SELECT max(hour) FROM checkpoints)",
		},
		prune.Rows{Table: "tallies", Bound: "31 days after the last", Age: "at", Before: prune.Ago(talliesKept, clock)},
		prune.Rows{Table: "refusal_days", Bound: "as refusals", Age: "greatest(day, hour)", Before: prune.Ago(refusalsKept+24*time.Hour, clock)},
		prune.Rows{Table: "refusals", Bound: "90 days", Age: "at", Before: prune.Ago(refusalsKept, clock), AppendOnly: true},
		prune.Rows{
			Table: "books", Bound: fmt.Sprintf("%d months after their period", kept.Books), Age: "period_end",
			Before: func() time.Time { return kept.BooksSince(clock()) },
		},
		prune.Rows{
			Table: "statements", Bound: fmt.Sprintf("%d months after their period", kept.Books), Age: "period_end",
			Before: func() time.Time { return kept.BooksSince(clock()) }, AppendOnly: true,
		},
		prune.Rows{
			Table: "grants", Bound: fmt.Sprintf("%d months after their end", kept.Books), Age: "coalesce(ended_at, expires_at, 'infinity')",
			Before: func() time.Time { return kept.BooksSince(clock()) }, Only: "(t.status <> 1 AND t.remaining = 0)",
		},
		pastDecisions{kept, clock},
		deletedOrganizations{deletions.Since(clock)}, erasuresOf(deletions.Table(clock)),
		prune.Rows{
			Table: "answers", Bound: "30 days", Age: "answered_at", Before: prune.Ago(answersKept, clock), AppendOnly: true,
		},
	}
}

// answersKept is how long a request may be repeated.
const answersKept = 30 * 24 * time.Hour

// Fixed returns the bounds of the other tables.
func Fixed() []prune.Bound {
	return []prune.Bound{
		{Table: "unpublished", Keeps: "a row for each organization whose state is to be published", By: "ledger/internal/bus, Accounts"},
		{Table: "checkpoint_rows", Keeps: "a few rows for each organization and checkpoint", By: "the foreign key to checkpoints"},
		{Table: "terms", Keeps: "one row", By: "its primary key"},
		{Table: "checked_ranges", Keeps: "a row for each partition of the log", By: "the log's partitions"},
		{Table: "chains", Keeps: "a row for each organization", By: "the organizations that there are"},
		{Table: "usage_days", Keeps: "as many days as transfers", By: "the fold of transfers"},
		{Table: "period_lines", Keeps: "a few rows for each book, and one for each of its grants, adjustments: 10,000",
			By: "the foreign key to books, and ledger.MaxDecisions"},
		{Table: "budgets", Keeps: "100 rows for each organization", By: "the organizations that there are"},
		{Table: "folded_transfers", Keeps: "a few rows for each book", By: "the foreign key to books"},
	}
}

// refusalsKept is how long a refusal can be queried.
const refusalsKept = 90 * 24 * time.Hour

// talliesKept exceeds how long the topic keeps a tally, which could come again.
const talliesKept = 31 * 24 * time.Hour

// rangesKept exceeds the default retention of the log, with which
// ranges are compared.
const rangesKept = 8 * 24 * time.Hour

// appliedRanges are the ranges. The newest of each partition stays, as
// the position applied. Those of unsealed hours stay too: they locate
// the charges of a link.
type appliedRanges struct{ clock func() time.Time }

func (appliedRanges) Name() string { return "ranges" }

func (appliedRanges) Keeps() string {
	return "8 days, those that are not sealed, and the newest of each partition"
}

// rangesPerPrune is how many of each partition go in one transaction.
const rangesPerPrune = 1000

// ofEachPartition finds the oldest ranges of each partition by index.
const ofEachPartition = `(SELECT DISTINCT partition FROM bus_positions WHERE group_name = $1 AND topic = $2) p
	CROSS JOIN LATERAL (SELECT ranges.ctid, booked_at, first_offset, next_offset FROM ranges WHERE partition = p.partition ORDER BY booked_at LIMIT $3) r`

// sealedThrough is the end of a partition's last linked hour; NULL
// before the first.
const sealedThrough = `(SELECT c.next_offset FROM cuts c JOIN seals s USING (hour) WHERE c.partition = p.partition AND s.root IS NOT NULL
	ORDER BY hour DESC LIMIT 1)`

func (a appliedRanges) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	var most int64
	err = tx.QueryRow(ctx, `WITH old AS (SELECT partition, r.* FROM `+ofEachPartition+` WHERE booked_at < $4
				AND first_offset < (SELECT max(first_offset) FROM ranges newest WHERE newest.partition = p.partition)
				AND next_offset <= `+sealedThrough+`),
			gone AS (DELETE FROM ranges WHERE ctid = ANY (ARRAY(SELECT ctid FROM old)))
		SELECT coalesce(sum(n), 0), coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM old GROUP BY partition) counted`,
		contract.GroupLedger, contract.TopicLogs, rangesPerPrune, a.clock().Add(-rangesKept)).Scan(&removed, &most)
	return removed, most == rangesPerPrune, err
}

func (appliedRanges) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	var oldest *time.Time
	err := tx.QueryRow(ctx, `SELECT min(booked_at) FROM `+ofEachPartition, contract.GroupLedger, contract.TopicLogs, 1).Scan(&oldest)
	if err != nil || oldest == nil {
		return time.Time{}, err
	}
	return *oldest, nil
}
