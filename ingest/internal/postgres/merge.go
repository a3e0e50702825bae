package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// MergerConfig configures a Merger.
type MergerConfig struct {
	Store   *Store
	Pool    *pgxpool.Pool
	NewID   func() string // makes the UUIDs of blocks
	Rests   func() bool   // whether blocks move away instead; optional
	Clock   func() time.Time
	Metrics prometheus.Registerer
	Logger  *slog.Logger
}

// A Merger merges small blocks into larger ones. Replicas share the work.
type Merger struct {
	MergerConfig
	metrics mergeMetrics
}

// NewMerger makes a Merger.
func NewMerger(config MergerConfig) *Merger { return &Merger{config, newMergeMetrics(config.Metrics)} }

const (
	mergeInterval = 5 * time.Second  // between looks for small blocks
	restInterval  = 10 * time.Minute // where blocks move away: a look finds none, and removes what is noted of them
	restFactor    = 3                // rest per work, to use at most a quarter of a processor
	roundSize     = 256              // projects' days at once
	mergeBytes    = 4 << 20          // of text in one transaction, and one large block beyond it
	claimTimeout  = time.Minute      // after a crash another may merge
	failureDelay  = 10 * time.Minute // before a retry
)

// Run merges until ctx ends. It logs a failure and retries.
func (m *Merger) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := m.run(ctx, restFactor); err != nil && ctx.Err() == nil {
			m.Logger.Warn("cannot merge small blocks", slog.String("error", err.Error()))
		}
		if m.Rests != nil && m.Rests() {
			lifecycle.Pause(ctx, restInterval)
		}
		lifecycle.Pause(ctx, mergeInterval)
	}
	return nil
}

// RunOnce merges everything due.
func (m *Merger) RunOnce(ctx context.Context) error { return m.run(ctx, 0) }

// run merges until nothing is due, by turns of the organizations:
// neither many projects nor a failure delay others.
func (m *Merger) run(ctx context.Context, rest int) error {
	var failed []error
	for ctx.Err() == nil {
		days, err := m.due(ctx)
		if err != nil || len(days) == 0 {
			return errors.Join(append(failed, err)...)
		}
		for _, h := range days {
			if ctx.Err() != nil {
				break
			}
			took, err := m.visit(ctx, h)
			if err != nil {
				failed = append(failed, fmt.Errorf("of project %s on %s: %w", h.project, h.day.begins.Format(time.DateOnly), err))
			}
			lifecycle.Pause(ctx, time.Duration(rest)*took)
		}
	}
	return errors.Join(failed...)
}

func (m *Merger) due(ctx context.Context) (days []projectDay, err error) {
	now, all := m.now(), backlog{}
	err = pg.InTxAsSystem(ctx, m.Pool, func(tx pgx.Tx) error {
		days, all, err = dueProjectDays(ctx, tx, now, roundSize)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list what is to be merged: %w", err)
	}
	m.metrics.due.Set(float64(all.days))
	m.metrics.late.Set(0)
	if all.days > 0 {
		m.metrics.late.Set(now.Sub(all.since).Seconds())
	}
	return days, nil
}

// now has the precision of the database, to be found again.
func (m *Merger) now() time.Time { return m.Clock().UTC().Truncate(time.Microsecond) }

// visit merges a project's day, unless another replica does. It claims
// and releases it in separate transactions: consumers write the same
// row and must not wait for a merge.
func (m *Merger) visit(ctx context.Context, h projectDay) (took time.Duration, err error) {
	begun := time.Now() //nolint:forbidigo // how long it has worked, whatever the day
	now := m.now()
	claimed, mine := now.Add(claimTimeout), false
	err = m.as(ctx, h, func(tx pgx.Tx) error {
		mine, err = h.claim(ctx, tx, now, claimed)
		return err
	})
	if err != nil || !mine {
		return 0, err
	}
	next, err := m.merge(ctx, h, now)
	switch {
	case errors.Is(err, errGone): // nothing is wrong with what is left
		next, err = now, nil
	case err != nil && ctx.Err() == nil:
		next = now.Add(failureDelay)
	}
	if failed := m.as(ctx, h, func(tx pgx.Tx) error { return h.release(ctx, tx, claimed, next) }); err == nil {
		err = failed
	}
	return time.Since(begun), err //nolint:forbidigo // as above
}

// as runs fn as the organization of h.
func (m *Merger) as(ctx context.Context, h projectDay, fn func(tx pgx.Tx) error) error {
	return pg.InTx(ctx, m.Pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(h.organization)); err != nil {
			return err
		}
		return fn(tx)
	})
}

// merge is one transaction, and returns when it is due next;
// zero: when there are more blocks.
func (m *Merger) merge(ctx context.Context, h projectDay, now time.Time) (next time.Time, err error) {
	w := &merging{m: m, of: h, now: now}
	err = pg.InTx(ctx, m.Pool, func(tx pgx.Tx) error {
		w.tx = tx
		next, err = w.run(ctx)
		return err
	})
	if err != nil {
		return next, err
	}
	m.metrics.blocks.Add(float64(w.taken))
	for _, b := range w.written {
		m.metrics.entries.Add(float64(b.Entries.Sum()))
		m.metrics.bytes.Add(float64(b.Bytes))
	}
	return next, nil
}

// A merging is the work of one transaction.
type merging struct {
	m       *Merger
	tx      pgx.Tx
	of      projectDay
	now     time.Time
	taken   int
	written []*Block
}

// run merges as the organization, within its policies. Deletions don't
// begin meanwhile.
func (w *merging) run(ctx context.Context) (next time.Time, err error) {
	deleted, err := w.begin(ctx)
	if err != nil || deleted {
		return time.Time{}, err
	}
	small, err := w.of.load(ctx, w.tx)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot list small blocks: %w", err)
	}
	runs, next := ingest.Merges(small, w.of.day.ends(), w.now)
	for size := 0; len(runs) > 0 && size < mergeBytes; runs = runs[1:] {
		if err := w.merge(ctx, runs[0]); err != nil {
			return time.Time{}, err
		}
		for i := range runs[0] {
			size += runs[0][i].Bytes
		}
	}
	if len(w.written) == 0 {
		return next, nil
	}
	return w.now, w.finish(ctx) // again: what was written may be merged further
}

// begin reports whether the project is deleted.
func (w *merging) begin(ctx context.Context) (deleted bool, err error) {
	if err := pg.AsSystem(ctx, w.tx); err != nil {
		return false, err
	}
	erased, err := erasure.FindDeleted(ctx, w.tx, []string{w.of.organization})
	if err != nil || erased.Has(w.of.organization, w.of.project) {
		return true, err
	}
	if err := pg.AsOrganization(ctx, w.tx, pg.Organization(w.of.organization)); err != nil {
		return false, err
	}
	if _, err := w.tx.Exec(ctx, `SELECT pg_advisory_xact_lock_shared(`+moveLock+`)`); err != nil {
		return false, err
	}
	_, err = w.tx.Exec(ctx, planning)
	return false, err
}

// merge takes a run of blocks and merges them.
func (w *merging) merge(ctx context.Context, run []ingest.Candidate) error {
	blocks, err := w.of.take(ctx, w.tx, run)
	if err != nil {
		return fmt.Errorf("cannot take %d small blocks: %w", len(run), err)
	}
	var entries []ingest.Stored
	for _, block := range blocks {
		stored, err := block.entries(w.m.Store.codec, new(unpacked))
		if err != nil {
			return err
		}
		entries = append(entries, stored...)
	}
	w.taken += len(run)
	for _, made := range ingest.Merge(entries) {
		w.written = append(w.written, w.block(made, run[len(run)-1].ReceivedAt))
	}
	return nil
}

// block is stored like the blocks that it replaces, the last received
// at a time.
func (w *merging) block(made ingest.Block, received time.Time) *Block {
	b := &Block{Block: made, ID: w.m.NewID(), Retention: w.of.day.retention, Organization: w.of.organization, Project: w.of.project}
	if b.at = b.latest(); dayOf(b.Retention, b.at) != w.of.day { // it was kept later than it was received
		b.at = received
	}
	return b
}

// finish writes the blocks. The number of the merge comes last, as
// other merges of the organization wait for its row.
func (w *merging) finish(ctx context.Context) error {
	if err := w.m.Store.copy(ctx, w.tx, w.of.day, w.written); err != nil {
		return err
	}
	if err := saveReaches(ctx, w.tx, map[day][]*Block{w.of.day: w.written}); err != nil {
		return err
	}
	merge, err := w.of.countMerge(ctx, w.tx)
	if err != nil {
		return fmt.Errorf("cannot count a merge: %w", err)
	}
	return w.of.saveMerged(ctx, w.tx, merge, w.written, w.now)
}

// countMerge returns the number of this merge. It comes last in its
// transaction: other merges of the organization wait here.
func (h projectDay) countMerge(ctx context.Context, tx pgx.Tx) (merge int64, err error) {
	err = tx.QueryRow(ctx, `INSERT INTO merge_counts VALUES ($1, 1) ON CONFLICT (organization) DO UPDATE SET merges = merge_counts.merges + 1 RETURNING merges`,
		h.organization).Scan(&merge)
	return merge, err
}

// saveMerged stores what a merge has written, for pages that have
// passed its blocks.
func (h projectDay) saveMerged(ctx context.Context, tx pgx.Tx, merge int64, blocks []*Block, now time.Time) error {
	var batch pgx.Batch
	for _, b := range blocks {
		batch.Queue(`INSERT INTO merged_blocks
			(organization, project, retention, merge, block, received_at, min_seconds, min_nanos, max_seconds, max_nanos, merged_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			h.organization, h.project, h.day.retention, merge, b.ID, b.at, b.Min.Seconds, b.Min.Nanos, b.Max.Seconds, b.Max.Nanos, now)
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// maxMergesBehind is how many merges a page can catch up on; beyond, it
// begins again after its place.
const maxMergesBehind = 1024

// maxReread is how many merged blocks a page reads again at most.
const maxReread = 64

const selectMerges = `SELECT coalesce(max(merges), 0) FROM merge_counts WHERE organization = $1`

// resume has a search that stopped among blocks read those again that
// were merged since.
func (s *scan) resume() error {
	since := s.merges - s.search.Start.Merges
	if s.search.Start.Seen == nil || since == 0 {
		return nil
	}
	if since < 0 || since > maxMergesBehind {
		s.search.Restart()
		return nil
	}
	merged, err := s.mergedSince()
	switch {
	case err != nil:
		return err
	case int64(merged.merges) < since || len(merged.passed) > maxReread:
		s.search.Restart()
	default:
		s.search.Resume(merged.passed)
	}
	return nil
}

// merged are how many merges are noted, and the blocks they
// wrote that the search has passed.
type merged struct {
	merges int
	passed []ingest.Ref
}

func (s *scan) mergedSince() (m merged, err error) {
	rows, err := s.tx.Query(s.ctx, `SELECT merge, retention, project, received_at, block, min_seconds, min_nanos, max_seconds, max_nanos
		FROM merged_blocks WHERE organization = $1 AND merge > $2 ORDER BY merge`, s.organization, s.search.Start.Merges)
	if err != nil {
		return m, err
	}
	var c ingest.Candidate
	var merge, last int64
	_, err = pgx.ForEachRow(rows, []any{
		&merge, &c.RetentionDays, &c.Project, &c.ReceivedAt, &c.ID, &c.Min.Seconds, &c.Min.Nanos, &c.Max.Seconds, &c.Max.Nanos,
	}, func() error {
		if merge != last {
			m.merges, last = m.merges+1, merge
		}
		s.read += headerBytes
		if s.search.Passed(&c) {
			m.passed = append(m.passed, c.Ref)
		}
		return nil
	})
	return m, err
}
