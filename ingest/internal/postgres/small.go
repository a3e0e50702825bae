package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
)

// gatherFor is how long small blocks gather before a merge is tried.
const gatherFor = 10 * time.Second

// A projectDay is a project and a day on which small blocks of
// it were received: a row of small_blocks.
type projectDay struct {
	organization, project string
	day                   day
}

func (h projectDay) compare(other projectDay) int {
	return cmp.Or(cmp.Compare(h.organization, other.organization), cmp.Compare(h.project, other.project),
		cmp.Compare(h.day.retention, other.day.retention), h.day.begins.Compare(other.day.begins))
}

// saveSmall marks days with new small blocks as due. Mostly they are
// already, and nothing is written.
func saveSmall(ctx context.Context, tx pgx.Tx, blocks map[day][]*Block, now time.Time) error {
	noted := projectDaysOf(blocks)
	if len(noted) == 0 {
		return nil
	}
	var organizations, projects []string
	var retentions []int16
	var days []time.Time
	for _, h := range noted {
		organizations, projects = append(organizations, h.organization), append(projects, h.project)
		retentions, days = append(retentions, int16(h.day.retention)), append(days, h.day.begins) //nolint:gosec // bounded by the contract
	}
	_, err := tx.Exec(ctx, `INSERT INTO small_blocks (organization, project, retention, day, due_at)
		SELECT n.*, $5 FROM unnest($1::text[], $2::text[], $3::smallint[], $4::date[]) AS n (organization, project, retention, day)
		WHERE NOT EXISTS (SELECT FROM small_blocks s WHERE (s.organization, s.project, s.retention, s.day) = (n.organization, n.project, n.retention, n.day)
			AND s.due_at <= $5)
		ON CONFLICT (organization, project, retention, day) DO UPDATE SET due_at = least(small_blocks.due_at, excluded.due_at)`,
		organizations, projects, retentions, days, now.Add(gatherFor))
	if err != nil {
		return fmt.Errorf("cannot save where small blocks lie: %w", err)
	}
	return nil
}

// projectDaysOf are in the order of their keys: transactions that write the
// same rows wait for each other in one order.
func projectDaysOf(blocks map[day][]*Block) (days []projectDay) {
	seen := map[projectDay]bool{}
	for d, list := range blocks {
		for _, b := range list {
			h := projectDay{b.Organization, b.Project, d}
			if b.Bytes < ingest.SmallBlockBytes && !seen[h] {
				seen[h] = true
				days = append(days, h)
			}
		}
	}
	slices.SortFunc(days, projectDay.compare)
	return days
}

// A backlog is the number of due days, and since when.
type backlog struct {
	days  int
	since time.Time
}

// dueProjectDays returns at most limit due days, in turns of the
// organizations, and the whole backlog.
func dueProjectDays(ctx context.Context, tx pgx.Tx, now time.Time, limit int) (days []projectDay, all backlog, err error) {
	rows, err := tx.Query(ctx, `SELECT organization, project, retention, day::timestamp AT TIME ZONE 'UTC', count(*) OVER (), min(due_at) OVER ()
		FROM (SELECT *, row_number() OVER (PARTITION BY organization ORDER BY due_at) AS turn FROM small_blocks
			WHERE due_at <= $1 AND claimed_until <= $1) AS due
		ORDER BY turn, due_at LIMIT $2`, now, limit)
	if err != nil {
		return nil, all, err
	}
	var h projectDay
	var retention int
	var begins time.Time
	_, err = pgx.ForEachRow(rows, []any{&h.organization, &h.project, &retention, &begins, &all.days, &all.since}, func() error {
		h.day = dayOf(retention, begins)
		days = append(days, h)
		return nil
	})
	return days, all, err
}

// projectDayKey are the columns that identify one, for queries of $1 to $4.
const projectDayKey = `organization = $1 AND project = $2 AND retention = $3 AND day = $4::date`

func (h projectDay) args(more ...any) []any {
	return append([]any{h.organization, h.project, int16(h.day.retention), h.day.begins}, more...) //nolint:gosec // bounded by the contract
}

// claim reserves the day until a time; false: another was faster.
func (h projectDay) claim(ctx context.Context, tx pgx.Tx, now, until time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `UPDATE small_blocks SET due_at = $6, claimed_until = $6 WHERE `+projectDayKey+` AND due_at <= $5 AND claimed_until <= $5`,
		h.args(now, until)...)
	return tag.RowsAffected() == 1, err
}

// release makes the day due again at next; zero: it is removed. New
// blocks since the claim have set a time. If another holds the claim by
// now, it changes nothing.
func (h projectDay) release(ctx context.Context, tx pgx.Tx, claimed, next time.Time) error {
	if next.IsZero() {
		_, err := tx.Exec(ctx, `DELETE FROM small_blocks WHERE `+projectDayKey+` AND due_at = $5 AND claimed_until = $5`, h.args(claimed)...)
		if err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `UPDATE small_blocks SET claimed_until = '-infinity', due_at = CASE due_at WHEN $5 THEN $6 ELSE due_at END
		WHERE `+projectDayKey+` AND claimed_until = $5`, h.args(claimed, next)...)
	return err
}

// maxSmallBlocks is how many small blocks are read: always enough to
// find some to merge.
const maxSmallBlocks = 4096

// smallQuery lists the small blocks of a project and day in the
// order of their receipt.
var smallQuery = fmt.Sprintf(`SELECT `+headerColumns+`''::bytea
	FROM blocks
	WHERE retention = $1 AND received_at >= $2 AND received_at < $3 AND organization = $4 AND project = $5 AND text_bytes < %d
		AND NOT EXISTS (SELECT FROM moving_blocks t WHERE t.organization = blocks.organization AND t.block = blocks.block)
	ORDER BY received_at LIMIT %d`, ingest.SmallBlockBytes, maxSmallBlocks)

func (h projectDay) queryArgs() []any {
	return []any{int16(h.day.retention), h.day.begins, h.day.ends(), h.organization, h.project} //nolint:gosec // bounded by the contract
}

func (h projectDay) load(ctx context.Context, tx pgx.Tx) ([]ingest.Candidate, error) {
	rows, err := tx.Query(ctx, smallQuery, h.queryArgs()...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (ingest.Candidate, error) { return scanHeader(row, h.day, nil) })
}

// errGone means that another process has taken blocks meanwhile.
var errGone = errors.New("blocks to be merged are gone")

// takeQuery removes blocks of a project and day. It names the
// partition by its columns.
const takeQuery = `DELETE FROM blocks AS b USING unnest($6::timestamptz[], $7::uuid[]) AS t (received_at, block)
	WHERE b.retention = $1 AND b.received_at >= $2 AND b.received_at < $3 AND b.organization = $4 AND b.project = $5
		AND b.received_at = t.received_at AND b.block = t.block RETURNING directory, ` + textsColumns

// take removes blocks and returns what they hold.
func (h projectDay) take(ctx context.Context, tx pgx.Tx, blocks []ingest.Candidate) ([]packed, error) {
	ids, received := make([]string, len(blocks)), make([]time.Time, len(blocks))
	for i := range blocks {
		ids[i], received[i] = uuidText(blocks[i].ID), blocks[i].ReceivedAt
	}
	rows, err := tx.Query(ctx, takeQuery, append(h.queryArgs(), received, ids)...)
	if err != nil {
		return nil, err
	}
	taken, err := pgx.CollectRows(rows, scanPacked)
	if err == nil && len(taken) != len(blocks) {
		err = errGone
	}
	return taken, err
}
