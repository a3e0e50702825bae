package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
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

// pastDecisions are the decisions older than the books. Those in force
// stay, and the last of each organization, which holds its number.
type pastDecisions struct {
	kept  ledger.Retention
	clock func() time.Time
}

func (pastDecisions) Name() string { return "events" }

func (d pastDecisions) Keeps() string {
	return fmt.Sprintf("what is in force about an organization; else %d months, of each period at most %d that people make and a few that time makes",
		d.kept.Books, ledger.MaxDecisions)
}

// organizationsPerPrune are the organizations of one transaction.
const organizationsPerPrune = 100

// pastOrganizations selects organizations with a past decision; each
// period makes at least one. Their horizon is the last number that is
// old and no longer compared with a link.
const pastOrganizations = `SELECT o.organization, horizon.version FROM organizations o
	CROSS JOIN LATERAL (SELECT version, ` + decidedAt + ` AS at FROM events e WHERE e.organization = o.organization AND stream = '` + decisionStream + `'
		AND name = ANY($2) ORDER BY version LIMIT 1) oldest
	CROSS JOIN LATERAL (SELECT coalesce((SELECT CASE WHEN sequence = 1 THEN 0 ELSE decisions END FROM links WHERE organization = o.organization
			ORDER BY sequence LIMIT 1), (SELECT decisions FROM chains WHERE organization = o.organization), 0) AS version) linked
	CROSS JOIN LATERAL (SELECT max(version) AS version FROM events e WHERE e.organization = o.organization AND stream = '` + decisionStream + `'
		AND version <= linked.version AND version < o.decisions AND ` + decidedAt + ` < $1) horizon
	WHERE oldest.at < $1 AND oldest.version <= horizon.version LIMIT $3`

// transient are the decisions without effect once the books of their
// time are gone.
var transient = []string{advanced, adjusted, testUsed, eventstorepg.ErasedName}

// removePast removes transient, cancelled and replaced decisions, and
// those about removed grants. The replacing decision must be past too;
// one about budgets goes once each of them is set again or removed. A
// cancelled plan replaces none.
const removePast = `WITH past AS (` + pastOrganizations + `), decided AS (
		SELECT organization, e.version, name, data, past.version AS horizon, lead(e.version) OVER of_thing AS next, lead(name) OVER of_thing AS next_name,
			lead(name, 2) OVER of_thing AS then_name
		FROM events e JOIN past USING (organization) WHERE stream = '` + decisionStream + `'
		WINDOW of_thing AS (PARTITION BY organization, CASE name WHEN '` + changeCancelled + `' THEN '` + planChanged + `' ELSE name END ORDER BY e.version)),
	budgets AS (SELECT organization, version, horizon, what, lead(version) OVER (PARTITION BY organization, project, key ORDER BY version) AS next
		FROM decided CROSS JOIN LATERAL (
			SELECT 'set' AS what, b ->> 'project' AS project, b ->> 'key' AS key FROM json_array_elements(data -> 'set') b
			UNION ALL SELECT 'removed', b ->> 'project', b ->> 'key' FROM json_array_elements(data -> 'removed') b) of
		WHERE name = '` + budgetsChanged + `'),
	budgeting AS (SELECT DISTINCT organization, version FROM budgets WHERE what = 'set' AND (next IS NULL OR next > horizon)),
	gone AS (SELECT organization, version FROM decided d WHERE version <= horizon AND CASE
		WHEN name = ANY($2) OR name = '` + changeCancelled + `' THEN true
		WHEN name = '` + budgetsChanged + `' THEN NOT EXISTS (SELECT FROM budgeting b WHERE b.organization = d.organization AND b.version = d.version)
		WHEN name IN ('` + granted + `', '` + revoked + `') THEN NOT EXISTS (
			SELECT FROM grants g WHERE g.organization = d.organization AND g.id IN (d.data ->> 'id', d.data ->> 'grant'))
		WHEN name = '` + planChanged + `' AND next_name = '` + changeCancelled + `' THEN true
		WHEN name = '` + planChanged + `' THEN next <= horizon AND then_name IS DISTINCT FROM '` + changeCancelled + `'
		ELSE next <= horizon END)
	DELETE FROM events e USING gone g WHERE e.organization = g.organization AND stream = '` + decisionStream + `' AND e.version = g.version`

// Prune implements prune.Table.
func (d pastDecisions) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, removePast, d.kept.BooksSince(d.clock()), transient, organizationsPerPrune)
	return tag.RowsAffected(), tag.RowsAffected() > 0, err
}

// Oldest is that of transient decisions: those in force have no age.
func (pastDecisions) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	var oldest *time.Time
	err := tx.QueryRow(ctx, `SELECT (SELECT `+decidedAt+` FROM events e WHERE name IN ($1, $2) ORDER BY position LIMIT 1)`, advanced, adjusted).Scan(&oldest)
	return timeOf(oldest), err
}

// deletedOrganizations are those deleted long ago. They go after the
// last of their books, with everything else of theirs.
type deletedOrganizations struct{ before func() time.Time }

func (deletedOrganizations) Name() string { return "organizations" }

func (deletedOrganizations) Keeps() string {
	return "a row for each organization, also a deleted one for WEIR_DELETIONS_MONTHS and as long as it has books"
}

const removeDeleted = `WITH gone AS (DELETE FROM organizations o USING erasures e
		WHERE e.organization = o.organization AND e.project = '' AND e.published_at < $1
			AND NOT EXISTS (SELECT FROM books b WHERE b.organization = o.organization)
			AND NOT EXISTS (SELECT FROM statements s WHERE s.organization = o.organization)
		RETURNING o.organization),
	chained AS (DELETE FROM chains c USING gone WHERE c.organization = gone.organization),
	linked AS (DELETE FROM links l USING gone WHERE l.organization = gone.organization),
	decided AS (DELETE FROM events e USING gone WHERE e.organization = gone.organization),
	pending AS (DELETE FROM unpublished u USING gone WHERE u.organization = gone.organization)
	SELECT count(*) FROM gone`

// Prune implements prune.Table.
func (d deletedOrganizations) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	err = tx.QueryRow(ctx, removeDeleted, d.before()).Scan(&removed)
	return removed, false, err
}

// Oldest is when the first one still there was deleted.
func (deletedOrganizations) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	var oldest *time.Time
	err := tx.QueryRow(ctx, `SELECT min(published_at) FROM erasures JOIN organizations USING (organization) WHERE project = ''`).Scan(&oldest)
	return timeOf(oldest), err
}

// erasuresOf keeps the record of a deletion as long as the organization's books.
func erasuresOf(rows prune.Rows) prune.Rows {
	rows.Only = `(t.project <> '' OR NOT EXISTS (SELECT FROM organizations o WHERE o.organization = t.organization))`
	return rows
}

// Erasable are the tables with content that tenants sent or that is
// about them. The books stay: they hold ids and amounts.
func Erasable() []erasure.Table {
	return []erasure.Table{decisions(), erasure.Rows("grants", erasure.OfOrganization), erasure.Rows("budgets", erasure.OfOrganization),
		erasure.Rows("answers", erasure.OfOrganization),
		checkpointRows(), erasure.Rows("inbox_held", erasure.OfProject), erasure.Parked()}
}

// checkpointRows empties what checkpoints have of an organization. The
// hashes stay, so that those of others still hold.
func checkpointRows() erasure.Table {
	return erasure.Table{Name: "checkpoint_rows", Erase: func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, _ string, _ int) (int64, string, error) {
		if of.Project != "" {
			return 0, "", nil
		}
		tag, err := tx.Exec(ctx, `UPDATE checkpoint_rows SET content = NULL WHERE organization = $1 AND content IS NOT NULL`, of.Organization)
		return tag.RowsAffected(), "", err
	}}
}

// decisions erases decisions. Their place stays, so an erased
// organization decides nothing more.
func decisions() erasure.Table {
	return erasure.Table{Name: "events", Erase: func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, _ string, _ int) (int64, string, error) {
		if of.Project != "" {
			return 0, "", nil
		}
		if err := eventstorepg.LockAppends(ctx, tx); err != nil {
			return 0, "", err
		}
		erased, err := eventstorepg.EraseTx(ctx, tx, of.Organization, []string{decisionStream})
		if err != nil {
			return 0, "", err
		}
		if _, err := tx.Exec(ctx, `UPDATE organizations SET due_at = NULL, pool = 0, budgets = 0 WHERE organization = $1`, of.Organization); err != nil {
			return 0, "", fmt.Errorf("cannot end what is due about %q: %w", of.Organization, err)
		}
		return int64(len(erased)), "", nil
	}}
}

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
