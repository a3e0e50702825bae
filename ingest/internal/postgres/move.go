package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// A Move is a batch of blocks of one partition on its way to another store, or
// back. Its number is in all rows that are made of them.
type Move struct {
	Number    int64
	Retention int
	Day       time.Time // of receipt
	Attempt   int       // the fence: who has a smaller one has lost the move
	Returned  bool      // its entries are blocks again
	ClaimedAt time.Time // by the clock of the database, as all times of a lease
}

// A MovingBlock is a block of a move.
type MovingBlock struct {
	ID                    [16]byte
	Organization, Project string
	Entries               int64
	packed                packed
}

// MoveLimits are when a move begins, and how large it is.
type MoveLimits struct {
	Bytes   int           // of text, at most; and one block
	Entries int64         // the same
	Least   int           // bytes of text that are worth a move
	Wait    time.Duration // for so many, since the oldest was received
	Lease   time.Duration // after which another process continues a move
}

// Waiting are the blocks that have not been moved.
type Waiting struct {
	Bytes int64
	Since time.Time // when the oldest was received; zero: there are none
}

// Moves are the moves of a schema. All of it is required.
type Moves struct {
	Pool   *pgxpool.Pool
	Store  *Store
	Limits MoveLimits
}

// MoveBounds are those of the tables of moves.
func MoveBounds() []prune.Bound {
	const by = "ingest/internal/postgres"
	return []prune.Bound{
		{Table: "moves", Keeps: "moves that have not ended, one of each process", By: by},
		{Table: "moving_blocks", Keeps: "their blocks, 20,000 of each", By: by},
		{Table: "move_state", Keeps: "one row", By: "its primary key"},
	}
}

// ErrMoveLost means that another process has continued a move.
var ErrMoveLost = errors.New("another process has continued this move")

// Target is the store that the history goes to: clickhouse or postgres.
func (m *Moves) Target(ctx context.Context) (store string, err error) {
	err = m.Pool.QueryRow(ctx, `SELECT store FROM move_state`).Scan(&store)
	return store, err
}

// SetTarget has all processes move the history to a store.
func (m *Moves) SetTarget(ctx context.Context, store string) error {
	_, err := m.Pool.Exec(ctx, `UPDATE move_state SET store = $1 WHERE store <> $1`, store)
	return err
}

// Last returns the number of the last move, and of the last of those that
// have left nothing in the other store.
func (m *Moves) Last(ctx context.Context) (last, emptied int64, err error) {
	err = m.Pool.QueryRow(ctx, `SELECT moves, emptied FROM move_state`).Scan(&last, &emptied)
	return last, emptied, err
}

// Emptied notes that the other store has nothing of the moves up to the last one.
func (m *Moves) Emptied(ctx context.Context, last int64) error {
	_, err := m.Pool.Exec(ctx, `UPDATE move_state SET emptied = $1 WHERE moves = $1 AND NOT EXISTS (SELECT FROM moves)`, last)
	return err
}

// Waiting sums up the blocks of all partitions.
func (m *Moves) Waiting(ctx context.Context) (all Waiting, err error) {
	days, err := m.days(ctx)
	for _, d := range days {
		if err != nil {
			break
		}
		var of Waiting
		if of, err = m.waiting(ctx, d); of.Since.IsZero() {
			continue
		}
		all.Bytes += of.Bytes
		if all.Since.IsZero() || of.Since.Before(all.Since) {
			all.Since = of.Since
		}
	}
	return all, err
}

func (m *Moves) days(ctx context.Context) (days []day, err error) {
	err = pg.ReadAsSystem(ctx, m.Pool, func(tx pgx.Tx) error {
		days, err = loadDays(ctx, tx)
		return err
	})
	slices.SortFunc(days, func(a, b day) int { return cmp.Or(a.begins.Compare(b.begins), cmp.Compare(a.retention, b.retention)) })
	return days, err
}

// ofDay names a partition by its columns, $1 to $3, so that no other is locked.
const ofDay = `b.retention = $1 AND b.received_at >= $2 AND b.received_at < $3`

func (d day) args(more ...any) []any {
	return append([]any{int16(d.retention), d.begins, d.ends()}, more...) //nolint:gosec // bounded by the contract
}

func (m *Moves) waiting(ctx context.Context, d day) (of Waiting, err error) {
	var since *time.Time
	err = pg.ReadAsSystem(ctx, m.Pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT coalesce(sum(text_bytes), 0), min(received_at) FROM blocks b WHERE `+ofDay, d.args()...).Scan(&of.Bytes, &since)
	})
	if since != nil {
		of.Since = *since
	}
	return of, err
}

// Tidy forgets where blocks were in the partitions before a day of which none is left: a
// search would look there for nothing. Writers note where blocks are after they have the lock of the partition.
func (m *Moves) Tidy(ctx context.Context, before time.Time) error {
	days, err := m.days(ctx)
	if err != nil {
		return err
	}
	for _, d := range days {
		of, err := m.waiting(ctx, d)
		if err != nil || !of.Since.IsZero() || !d.begins.Before(before) {
			continue
		}
		err = pg.InTxAsSystem(ctx, m.Pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, lockTimeout+`; LOCK TABLE `+pgx.Identifier{d.partition()}.Sanitize()+` IN SHARE ROW EXCLUSIVE MODE`); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `DELETE FROM block_days WHERE retention = $1 AND day = $2::date
				AND NOT EXISTS (SELECT FROM blocks b WHERE b.retention = $1 AND b.received_at >= $2 AND b.received_at < $3)`, d.args()...)
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot tidy up %s: %w", d.partition(), err)
		}
	}
	return nil
}

// Claim begins a move, of the oldest partition that is due; nil: none is. What is
// claimed is committed before anything is sent.
func (m *Moves) Claim(ctx context.Context, now time.Time) (*Move, error) {
	days, err := m.days(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range days {
		of, err := m.waiting(ctx, d)
		if err != nil {
			return nil, err
		}
		if of.Bytes < int64(m.Limits.Least) && (of.Since.IsZero() || now.Sub(of.Since) < m.Limits.Wait) {
			continue
		}
		if move, err := m.claim(ctx, d); move != nil || err != nil {
			return move, err
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// moveLock is held by merges, shared: one of them either ends before a move takes
// blocks, or sees which ones it has taken. Moves end one after the other, as two may have blocks of one bundle.
const moveLock = `hashtextextended('weir moves ' || current_schema(), 0)`

// claim takes blocks that no other move has. The number's row is locked, so
// that moves begin one after the other: a reader that sees a number sees all moves up to it.
func (m *Moves) claim(ctx context.Context, d day) (move *Move, err error) {
	err = pg.InTxAsSystem(ctx, m.Pool, func(tx pgx.Tx) error {
		move = &Move{Retention: d.retention, Day: d.begins, Attempt: 1}
		if err := tx.QueryRow(ctx, `UPDATE move_state SET moves = moves + 1 RETURNING moves, clock_timestamp()`).Scan(&move.Number, &move.ClaimedAt); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(`+moveLock+`)`); err != nil {
			return err
		}
		blocks, err := m.choose(ctx, tx, d)
		if err != nil || len(blocks) == 0 {
			move = nil
			return cmp.Or(err, pgx.ErrNoRows)
		}
		_, err = tx.Exec(ctx, `INSERT INTO moves (move, retention, day, returned, attempt, begun_at, claimed_until) VALUES ($1, $2, $3, false, 1, $4, $5)`,
			move.Number, int16(d.retention), d.begins, move.ClaimedAt, move.ClaimedAt.Add(m.Limits.Lease)) //nolint:gosec // bounded by the contract
		if err != nil {
			return err
		}
		return saveMoving(ctx, tx, move.Number, blocks)
	})
	if errors.Is(err, pgx.ErrNoRows) { // other moves have all of them
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("cannot begin a move of %s: %w", d.partition(), err)
	}
	return move, nil
}

func saveMoving(ctx context.Context, tx pgx.Tx, move int64, blocks []claimed) error {
	organizations, projects, ids := make([]string, len(blocks)), make([]string, len(blocks)), make([]string, len(blocks))
	received, entries := make([]time.Time, len(blocks)), make([]int64, len(blocks))
	for i, b := range blocks {
		organizations[i], projects[i], ids[i], received[i], entries[i] = b.organization, b.project, b.id, b.receivedAt, b.entries
	}
	_, err := tx.Exec(ctx, `INSERT INTO moving_blocks (organization, block, move, project, received_at, entries)
		SELECT t.organization, t.block, $1, t.project, t.received_at, t.entries
		FROM unnest($2::text[], $3::uuid[], $4::text[], $5::timestamptz[], $6::bigint[]) AS t (organization, block, project, received_at, entries)`,
		move, organizations, ids, projects, received, entries)
	return err
}

// A claimed block is one that a move takes.
type claimed struct {
	organization, project, id string
	receivedAt                time.Time
	bytes                     int
	entries                   int64
}

// mostBlocks bounds the rows of a move.
const mostBlocks = 20_000

// choose takes the oldest blocks of a partition, except those that are deleted.
func (m *Moves) choose(ctx context.Context, tx pgx.Tx, d day) (blocks []claimed, err error) {
	rows, err := tx.Query(ctx, `SELECT organization, project, block::text, received_at, text_bytes, (SELECT sum(n) FROM unnest(entries) AS n)::bigint
		FROM blocks b WHERE `+ofDay+` AND NOT EXISTS (SELECT FROM moving_blocks t WHERE t.organization = b.organization AND t.block = b.block)
		ORDER BY received_at, block LIMIT $4`, d.args(mostBlocks)...)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c claimed, err error) {
		err = row.Scan(&c.organization, &c.project, &c.id, &c.receivedAt, &c.bytes, &c.entries)
		return c, err
	})
	if err != nil {
		return nil, err
	}
	var organizations []string
	for _, b := range all {
		organizations = append(organizations, b.organization)
	}
	slices.Sort(organizations)
	deleted, err := erasure.FindDeleted(ctx, tx, slices.Compact(organizations))
	if err != nil {
		return nil, err
	}
	size, entries := 0, int64(0)
	for _, b := range all {
		if deleted.Has(b.organization, b.project) {
			continue
		}
		blocks = append(blocks, b)
		size, entries = size+b.bytes, entries+b.entries
		if size >= m.Limits.Bytes || entries >= m.Limits.Entries {
			break
		}
	}
	return blocks, nil
}

// Resume takes over a move whose process has not ended it in time; nil: there is none.
func (m *Moves) Resume(ctx context.Context) (*Move, error) {
	var move Move
	err := m.Pool.QueryRow(ctx, `UPDATE moves SET attempt = attempt + 1, claimed_until = clock_timestamp() + make_interval(secs => $1)
		WHERE move = (SELECT move FROM moves WHERE claimed_until <= clock_timestamp() ORDER BY move LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING move, retention, day::timestamp AT TIME ZONE 'UTC', attempt, returned, clock_timestamp()`, m.Limits.Lease.Seconds()).
		Scan(&move.Number, &move.Retention, &move.Day, &move.Attempt, &move.Returned, &move.ClaimedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("cannot continue a move: %w", err)
	}
	move.Day = move.Day.UTC()
	return &move, nil
}

// Release lets another process continue a move at once.
func (m *Moves) Release(ctx context.Context, move *Move, after time.Duration) error {
	_, err := m.Pool.Exec(ctx, `UPDATE moves SET claimed_until = clock_timestamp() + make_interval(secs => $3) WHERE move = $1 AND attempt = $2`,
		move.Number, move.Attempt, after.Seconds())
	return err
}

// Blocks returns the blocks of a move, always in one order. Those that an
// erasure has removed meanwhile are not among them.
func (m *Moves) Blocks(ctx context.Context, move *Move) (blocks []MovingBlock, err error) {
	d := dayOf(move.Retention, move.Day)
	err = pg.ReadAsSystem(ctx, m.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT t.block, t.organization, t.project, t.entries, b.directory, `+textsColumns+` FROM moving_blocks AS t
			JOIN blocks AS b ON b.organization = t.organization AND b.project = t.project AND b.received_at = t.received_at AND b.block = t.block
			WHERE `+ofDay+` AND t.move = $4 ORDER BY t.organization COLLATE "C", t.block`, d.args(move.Number)...)
		if err != nil {
			return err
		}
		blocks, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b MovingBlock, err error) {
			err = row.Scan(append([]any{&b.ID, &b.Organization, &b.Project, &b.Entries, &b.packed.directory}, b.packed.textsInto()...)...)
			return b, err
		})
		return err
	})
	for i := range blocks {
		if err == nil {
			err = m.Store.fetch(ctx, &blocks[i].packed)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the blocks of move %d: %w", move.Number, err)
	}
	return blocks, nil
}

// Each calls each with the entries of every block, which are valid until it returns.
func (m *Moves) Each(blocks []MovingBlock, each func(block *MovingBlock, entries []ingest.Stored)) error {
	var into unpacked
	for i := range blocks {
		entries, err := blocks[i].packed.entries(m.Store.codec, &into)
		if err != nil {
			return fmt.Errorf("cannot read block %s: %w", uuidText(blocks[i].ID), err)
		}
		each(&blocks[i], entries)
	}
	return nil
}

// Finish removes the blocks of a move, which the other store has, and the move.
func (m *Moves) Finish(ctx context.Context, move *Move) error {
	d := dayOf(move.Retention, move.Day)
	return m.end(ctx, move, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(`+moveLock+`)`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, planning); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `WITH gone AS (DELETE FROM blocks AS b USING moving_blocks AS t WHERE `+ofDay+` AND t.move = $4
			AND b.organization = t.organization AND b.project = t.project AND b.received_at = t.received_at AND b.block = t.block RETURNING b.bundle)
			SELECT DISTINCT bundle FROM gone WHERE bundle IS NOT NULL`, d.args(move.Number)...)
		if err != nil {
			return err
		}
		bundles, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
		if err == nil {
			_, err = tx.Exec(ctx, partBundles, d.args(bundles)...)
		}
		return err
	})
}

// Forget removes a returned move, of which the other store has nothing any more.
func (m *Moves) Forget(ctx context.Context, move *Move) error {
	return m.end(ctx, move, func(pgx.Tx) error { return nil })
}

func (m *Moves) end(ctx context.Context, move *Move, remove func(tx pgx.Tx) error) error {
	err := pg.InTxAsSystem(ctx, m.Pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM moves WHERE move = $1 AND attempt = $2`, move.Number, move.Attempt)
		if err == nil && tag.RowsAffected() != 1 {
			err = ErrMoveLost
		}
		if err == nil {
			err = remove(tx)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM moving_blocks WHERE move = $1`, move.Number)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot end move %d: %w", move.Number, err)
	}
	return nil
}

// Return keeps the entries of a move as blocks again. From then on what the
// other store has of it does not count, and is to be deleted. False: it was returned before.
func (m *Moves) Return(ctx context.Context, move *Move, blocks []Block) (bool, error) {
	err := pg.InTxAsSystem(ctx, m.Pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `INSERT INTO moves (move, retention, day, returned, attempt, begun_at, claimed_until)
			VALUES ($1, $2, $3, true, 1, clock_timestamp(), clock_timestamp() + make_interval(secs => $4))
			ON CONFLICT DO NOTHING RETURNING attempt, claimed_until`,
			move.Number, int16(move.Retention), move.Day, m.Limits.Lease.Seconds()).Scan(&move.Attempt, &move.ClaimedAt) //nolint:gosec // bounded by the contract
		if err != nil {
			return err
		}
		var organizations []string
		for i := range blocks {
			organizations = append(organizations, blocks[i].Organization)
		}
		slices.Sort(organizations)
		deleted, err := erasure.FindDeleted(ctx, tx, slices.Compact(organizations))
		if err != nil {
			return err
		}
		blocks = slices.DeleteFunc(blocks, func(b Block) bool { return deleted.Has(b.Organization, b.Project) })
		return m.Store.Keep(ctx, tx, blocks)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot return move %d: %w", move.Number, err)
	}
	move.Returned = true
	return true, nil
}

// IsMoving reports whether a move has blocks of a deletion, which may reach
// the other store as long as it has not ended.
func IsMoving(ctx context.Context, tx pgx.Tx, of erasure.Deletion) (moving bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM moving_blocks WHERE organization = $1 AND ($2 = '' OR project = $2))`, of.Organization, of.Project).
		Scan(&moving)
	return moving, err
}

// selectMoved is what of the other store counts beside the blocks of a snapshot.
const selectMoved = `SELECT moves, ARRAY(SELECT move FROM moves ORDER BY move) FROM move_state`

// Open lists the moves that have not ended.
func (m *Moves) Open(ctx context.Context) (open []int64, err error) {
	err = m.Pool.QueryRow(ctx, `SELECT ARRAY(SELECT move FROM moves ORDER BY move)`).Scan(&open)
	return open, err
}
