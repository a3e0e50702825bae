package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/clickhouse"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Targets of a history.
const (
	ClickHouse = "clickhouse"
	PostgreSQL = "postgres"
)

// Limits are those of moves in production. An insert that begins within
// insertBegins ends before the lease, also where the two clocks differ by minutes.
func Limits() postgres.MoveLimits {
	return postgres.MoveLimits{Bytes: 32 << 20, Entries: 200_000, Least: 16 << 20, Wait: time.Minute, Lease: 10 * time.Minute}
}

const (
	insertBegins = 3 * time.Minute // after the claim, by the clock of ClickHouse; it may take two minutes
	moveInterval = 5 * time.Second
	refusedDelay = 10 * time.Second // before a refused insert is tried again
	askInterval  = time.Minute      // for what waits
	tidyInterval = time.Hour
)

// Config is what a Mover works with. All of it is required.
type Config struct {
	Moves   *postgres.Moves
	Rows    *clickhouse.Store
	NewID   func() string // makes the UUIDs of blocks
	Clock   func() time.Time
	Metrics prometheus.Registerer
	Logger  *slog.Logger
}

// A Mover moves entries to the store that is their target. Several share the work.
type Mover struct {
	Config
	metrics metrics
	checked bool        // ClickHouse has no move that PostgreSQL does not know
	working atomic.Bool // blocks move away
	target  string      // as it was last read
	asked   time.Time   // for what waits
	tidied  time.Time
}

// NewMover makes a Mover.
func NewMover(config Config) *Mover {
	return &Mover{Config: config, metrics: newMetrics(config.Metrics)}
}

// Run moves until ctx ends. It logs a failure and retries.
func (m *Mover) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, moveInterval, m.RunOnce, lifecycle.Warn(m.Logger, "cannot move entries between the stores"))
}

// Working reports whether blocks move away, so that merging them is wasted work.
func (m *Mover) Working() bool { return m.working.Load() }

// RunOnce moves all that is due.
func (m *Mover) RunOnce(ctx context.Context) error {
	for {
		moved, err := m.Step(ctx)
		m.working.Store(err == nil && m.target == ClickHouse)
		if err != nil || !moved {
			return errors.Join(err, m.measure(ctx))
		}
	}
}

// Step makes one move, or ends one that another process has begun. False: there is none.
func (m *Mover) Step(ctx context.Context) (moved bool, err error) {
	if m.target, err = m.Moves.Target(ctx); err != nil {
		return false, err
	}
	if err := m.check(ctx); err != nil {
		return false, err
	}
	move, err := m.Moves.Resume(ctx)
	if err != nil {
		return false, err
	}
	if move != nil {
		return true, m.proceed(ctx, move)
	}
	if m.target == PostgreSQL {
		return m.returnOne(ctx)
	}
	if move, err = m.Moves.Claim(ctx, m.Clock()); move == nil || err != nil {
		return false, err
	}
	return true, m.proceed(ctx, move)
}

// check prepares ClickHouse, and refuses to move where ClickHouse has moves that PostgreSQL does not know: it was
// restored from an older backup, or is another one. Their numbers would come again.
func (m *Mover) check(ctx context.Context) error {
	if m.checked {
		return nil
	}
	if err := m.Rows.Migrate(ctx, m.Logger); err != nil {
		return err
	}
	known, _, err := m.Moves.Last(ctx)
	if err != nil {
		return err
	}
	last, err := m.Rows.LastMove(ctx)
	if err != nil {
		return err
	}
	if last > known {
		return fmt.Errorf("ClickHouse has moves up to %d, PostgreSQL knows %d: if PostgreSQL was restored from a backup, run `weir history discard`", last, known)
	}
	m.checked = true
	return nil
}

// proceed ends a move. After a failure whose outcome is unknown its lease runs
// out before another attempt; where nothing can be under way any more it need not.
func (m *Mover) proceed(ctx context.Context, move *postgres.Move) error {
	finish := m.send
	if move.Returned {
		finish = m.clear
	}
	err := finish(ctx, move)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && isOver(err) {
		err = errors.Join(err, m.Moves.Release(ctx, move, refusedDelay))
	}
	return fmt.Errorf("move %d: %w", move.Number, err)
}

// isOver reports whether a failed statement is certainly not under way: it was
// answered, or could not be sent.
func isOver(err error) bool {
	var dial *net.OpError
	return !clickhouse.IsUnreachable(err) || errors.As(err, &dial) && dial.Op == "dial"
}

// send inserts the blocks of a move and removes them here. It asks ClickHouse what
// it has rather than believe an answer, or none: before an insert if there was an attempt, and after it.
func (m *Mover) send(ctx context.Context, move *postgres.Move) error {
	blocks, err := m.Moves.Blocks(ctx, move)
	if err != nil {
		return err
	}
	whole := len(blocks) == 0
	if move.Attempt > 1 && !whole {
		if whole, err = m.isWhole(ctx, move, blocks); err != nil {
			return err
		}
	}
	if !whole {
		if err := m.insert(ctx, move, blocks); err != nil {
			return err
		}
	}
	if err := m.Moves.Finish(ctx, move); err != nil {
		return err
	}
	for i := range blocks {
		m.metrics.entries.Add(float64(blocks[i].Entries))
	}
	return nil
}

// insert inserts until all is there once. The same token again inserts what is
// missing, and nothing twice. If that does not help, what there is of the move is deleted.
func (m *Mover) insert(ctx context.Context, move *postgres.Move, blocks []postgres.MovingBlock) error {
	token := "weir-" + strconv.FormatInt(move.Number, 10)
	for repaired := false; ; repaired = true {
		if err := m.insertOnce(ctx, move, blocks, token); err != nil {
			return err
		}
		whole, err := m.isWhole(ctx, move, blocks)
		if whole || err != nil {
			return err
		}
		if repaired {
			return errors.New("ClickHouse acknowledges an insert, but does not have what was inserted")
		}
		m.metrics.repairs.Inc()
		m.Logger.Error("ClickHouse has other rows of a move than were inserted; they are deleted and inserted again", slog.Int64("move", move.Number))
		if err := m.Rows.Delete(ctx, move.Number, move.Retention, move.Day, deadline(move)); err != nil {
			return err
		}
		token = fmt.Sprintf("%s-%d", token, move.Attempt)
	}
}

// deadline is when an insert of an attempt can't begin any more.
func deadline(move *postgres.Move) time.Time { return move.ClaimedAt.Add(insertBegins) }

func (m *Mover) insertOnce(ctx context.Context, move *postgres.Move, blocks []postgres.MovingBlock, token string) error {
	ctx, cancel := context.WithTimeout(ctx, insertBegins)
	defer cancel()
	batch := &clickhouse.Batch{
		Move: move.Number, Retention: move.Retention, Day: move.Day, Token: token, Deadline: deadline(move),
	}
	err := m.Moves.Each(blocks, func(block *postgres.MovingBlock, entries []ingest.Stored) {
		batch.Add(block.Organization, block.Project, block.ID, entries)
	})
	if err != nil {
		return err
	}
	if err := m.Rows.Insert(ctx, batch); err != nil {
		return err
	}
	m.metrics.bytes.Add(float64(batch.Bytes()))
	return nil
}

// isWhole reports whether ClickHouse has each entry of the blocks once.
func (m *Mover) isWhole(ctx context.Context, move *postgres.Move, blocks []postgres.MovingBlock) (bool, error) {
	present, err := m.Rows.Present(ctx, move.Number, move.Retention, move.Day)
	if err != nil {
		return false, err
	}
	for i := range blocks {
		if (present[blocks[i].ID] != clickhouse.Presence{Rows: blocks[i].Entries, Entries: blocks[i].Entries}) {
			return false, nil
		}
	}
	return true, nil
}

// returnOne makes the entries of one move blocks again. False: there are none.
func (m *Mover) returnOne(ctx context.Context) (bool, error) {
	last, emptied, err := m.Moves.Last(ctx)
	if err != nil || last == emptied {
		return false, err
	}
	list, err := m.Rows.Returning(ctx)
	if err != nil {
		return false, err
	}
	open, err := m.Moves.Open(ctx) // after the list: what has rows and is not open has ended
	if err != nil {
		return false, err
	}
	list = slices.DeleteFunc(list, func(r clickhouse.Returning) bool { return slices.Contains(open, r.Move) })
	if len(list) == 0 {
		if len(open) > 0 {
			return false, nil
		}
		return false, m.Moves.Emptied(ctx, last)
	}
	move := &postgres.Move{Number: list[0].Move, Retention: int(list[0].Retention), Day: list[0].Day}
	blocks, err := m.blocks(ctx, move)
	if err != nil {
		return false, err
	}
	mine, err := m.Moves.Return(ctx, move, blocks)
	if err != nil || !mine {
		return mine, err
	}
	return true, m.proceed(ctx, move)
}

// blocks makes blocks of the rows of a move.
func (m *Mover) blocks(ctx context.Context, move *postgres.Move) (blocks []postgres.Block, err error) {
	type owner struct {
		organization, project string
		span                  ingest.Span
	}
	open := map[owner]*ingest.Builder{} // bounded by a move
	build := func(of owner) {
		if builder := open[of]; builder.Len() > 0 {
			blocks = append(blocks, postgres.Block{
				Block: builder.Build(), ID: m.NewID(), Organization: of.organization, Project: of.project, Retention: move.Retention,
			})
		}
	}
	err = m.Rows.Rows(ctx, move.Number, move.Retention, move.Day, func(organization, project string, entry ingest.Stored) {
		of := owner{organization, project, ingest.SpanOf(entry.Time, entry.ReceivedAt)}
		if open[of] == nil {
			open[of] = &ingest.Builder{}
		}
		if open[of].Add(entry); open[of].Full() {
			build(of)
		}
	})
	for of := range open {
		build(of)
	}
	return blocks, err
}

// clear deletes what ClickHouse has of a returned move.
func (m *Mover) clear(ctx context.Context, move *postgres.Move) error {
	if err := m.Rows.Delete(ctx, move.Number, move.Retention, move.Day, time.Time{}); err != nil {
		return err
	}
	present, err := m.Rows.Present(ctx, move.Number, move.Retention, move.Day)
	if err != nil {
		return err
	}
	if len(present) > 0 {
		return fmt.Errorf("ClickHouse still has %d blocks of it", len(present))
	}
	return m.Moves.Forget(ctx, move)
}

// measure asks for what waits, and tidies up, now and then.
func (m *Mover) measure(ctx context.Context) error {
	now := m.Clock()
	if now.Sub(m.asked) < askInterval {
		return nil
	}
	waiting, err := m.Moves.Waiting(ctx)
	if err != nil {
		return err
	}
	m.asked = now
	m.metrics.waiting.Set(float64(waiting.Bytes))
	m.metrics.late.Set(0)
	if !waiting.Since.IsZero() && m.target == ClickHouse {
		m.metrics.late.Set(now.Sub(waiting.Since).Seconds())
	}
	if m.target != ClickHouse || now.Sub(m.tidied) < tidyInterval {
		return nil
	}
	m.tidied = now
	return m.Moves.Tidy(ctx, now.AddDate(0, 0, -1))
}

// Erasable is ClickHouse's part of what is erased: after the tables of
// PostgreSQL, and once no move of it is under way.
func (m *Mover) Erasable() erasure.Table {
	return erasure.Table{Name: "clickhouse", Erase: func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, _ string, _ int) (int64, string, error) {
		moving, err := postgres.IsMoving(ctx, tx, of)
		if err != nil {
			return 0, "", err
		}
		if moving {
			return 0, "", erasure.ErrNotYet
		}
		left, err := m.Rows.Erase(ctx, of.Organization, of.Project)
		if err == nil && left > 0 {
			err = erasure.ErrNotYet
		}
		return 0, "", err
	}}
}

// metrics count what moves, and measure what waits.
type metrics struct {
	entries, bytes, repairs prometheus.Counter
	waiting, late           prometheus.Gauge
}

// RegisterMetrics is for a process without a Mover: its metrics are documented.
func RegisterMetrics(registerer prometheus.Registerer) { newMetrics(registerer) }

func newMetrics(registerer prometheus.Registerer) metrics {
	make := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return make.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return make.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return metrics{
		entries: counter("weir_ingest_moved_entries_total", "Entries that were moved to ClickHouse."),
		bytes:   counter("weir_ingest_moved_bytes_total", "What was sent to ClickHouse for them, with what was sent again."),
		repairs: counter("weir_ingest_move_repairs_total", "Moves of which ClickHouse had other rows than were inserted; they were deleted and inserted again."),
		waiting: gauge("weir_ingest_move_waiting_bytes", "Text of the blocks that PostgreSQL holds for ClickHouse."),
		late:    gauge("weir_ingest_move_late_seconds", "How long ago the oldest of them was received."),
	}
}
