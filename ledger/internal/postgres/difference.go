package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Difference is a thing in which two ledgers differ.
type Difference struct {
	Of              string // its kind
	Key             string
	Before, Rebuilt string // its content; empty: it is missing
}

func (d Difference) String() string {
	return fmt.Sprintf("%s %s: %q before, %q rebuilt", d.Of, d.Key, d.Before, d.Rebuilt)
}

// compared is a kind of things that are compared, by key and content.
// Its table's alias is x.
type compared struct {
	of, key, content, from string
	pruned                 bool // old ones are removed: one that only the other has is no difference
}

// notDeleted leaves out deleted organizations, which are not rebuilt.
const notDeleted = ` x WHERE NOT EXISTS (SELECT FROM erasures e WHERE e.organization = x.organization AND e.project = '')`

var comparedThings = []compared{
	{of: "organization", key: `organization`, from: `organizations` + notDeleted,
		content: `plans, anchor_day, anchors, suspended, pool, closed_through, decisions, decided_at, budgets, thresholds, clock, head, statements, stated`},
	{of: "book", key: `organization, period_start`, from: `books` + notDeleted,
		content: `period_end, issuer, grant_left, consumed, overage, credit, expired, voided, overshoot, reached, raises`},
	{of: "grant", key: `organization, id`, from: `grants` + notDeleted, content: `amount, remaining, consumed, expired, voided, priority, starts_at, expires_at,
		rollover_cap, source, reason, created_at, status, announced, ended_at, ahead, decision`},
	{of: "budget", key: `organization, project, key`, from: `budgets` + notDeleted, content: `bytes, used, period_start, reached, since`},
	{of: "line", key: `organization, period_start, kind, subject, of_period`, from: `period_lines` + notDeleted, content: `bytes`},
	{of: "statement", key: `organization, number`, from: `statements` + notDeleted, content: `period_start, period_end, made_at, document, previous, hash`},
	{of: "usage of a day", key: `organization, day`, content: `sum(bytes), sum(entries), sum(errors)`, pruned: true,
		from: `usage_days` + notDeleted + ` AND outcome = 'accepted' GROUP BY organization, day`},
	{of: "link", key: `organization, sequence`, from: `links` + notDeleted, content: `hour, hash`, pruned: true},
	{of: "chain", key: `organization`, from: `chains` + notDeleted, content: `sequence, hour, hash`},
	{of: "root", key: `hour`, content: `organizations, root`, pruned: true,
		from: `seals WHERE root IS NOT NULL AND NOT EXISTS (SELECT FROM erasures WHERE project = '')`}, // a root has the chains of deleted ones too
}

// query reads key and content as text; NULL differs from any text.
func (c compared) query() string {
	return fmt.Sprintf(`SELECT concat_ws(' ', %s) COLLATE "C" AS place, jsonb_build_array(%s)::text FROM %s ORDER BY place`, c.key, c.content, c.from)
}

// Differences compares two ledgers, each as its transaction sees it. It
// returns how many things were compared, and at most limit differences.
func Differences(ctx context.Context, before, rebuilt pgx.Tx, limit int) (found []Difference, things int, err error) {
	for _, kind := range comparedThings {
		count, err := kind.compare(ctx, before, rebuilt, func(d Difference) {
			if len(found) < limit {
				found = append(found, d)
			}
		})
		if err != nil {
			return nil, 0, fmt.Errorf("cannot compare each %s: %w", kind.of, err)
		}
		things += count
	}
	late, err := bookedLate(ctx, rebuilt, limit-len(found))
	return append(found, late...), things, err
}

// maxBookingDelay is the longest time by which a rebuilt range is
// booked later: entries of a minute are booked together, and clocks differ.
const maxBookingDelay = 2 * time.Minute

// bookedLate finds rebuilt ranges booked too late. A rebuilt range is
// booked at its acceptance, never after its first booking.
func bookedLate(ctx context.Context, rebuilt pgx.Tx, limit int) ([]Difference, error) {
	rows, _ := rebuilt.Query(ctx, `SELECT 'range', concat_ws(' ', made.partition, made.first_offset), was.booked_at::text, made.booked_at::text
		FROM `+RebuildingSchema+`.ranges AS made CROSS JOIN LATERAL (SELECT * FROM `+Schema+`.ranges WHERE partition = made.partition
			AND first_offset <= made.first_offset ORDER BY first_offset DESC LIMIT 1) AS was
		WHERE was.next_offset > made.first_offset AND made.booked_at > was.booked_at + $1::interval
		ORDER BY made.partition, made.first_offset LIMIT $2`, maxBookingDelay, limit)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Difference])
}

// compare merges both in key order.
func (c compared) compare(ctx context.Context, before, rebuilt pgx.Tx, differ func(Difference)) (things int, err error) {
	was := openThings(ctx, before, c.query())
	defer was.rows.Close()
	is := openThings(ctx, rebuilt, c.query())
	defer is.rows.Close()
	for was.more || is.more {
		switch {
		case !is.more || was.more && was.key < is.key:
			differ(Difference{Of: c.of, Key: was.key, Before: was.content})
			was.step()
		case !was.more || is.key < was.key:
			if !c.pruned {
				differ(Difference{Of: c.of, Key: is.key, Rebuilt: is.content})
			}
			is.step()
		default:
			if was.content != is.content {
				differ(Difference{Of: c.of, Key: was.key, Before: was.content, Rebuilt: is.content})
			}
			was.step()
			is.step()
		}
		things++
	}
	return things, cmp.Or(was.err, is.err)
}

// things iterates over those of a kind.
type things struct {
	rows         pgx.Rows
	more         bool
	key, content string
	err          error
}

func openThings(ctx context.Context, tx pgx.Tx, query string) *things {
	rows, _ := tx.Query(ctx, query)
	t := &things{rows: rows}
	t.step()
	return t
}

func (t *things) step() {
	if t.more = t.rows.Next(); t.more {
		t.err = t.rows.Scan(&t.key, &t.content)
		t.more = t.err == nil
		return
	}
	t.err = t.rows.Err()
}
