package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
)

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

// resume has a search that stopped among blocks read those again that
// were merged since.
func (s *scan) resume() error {
	if err := s.tx.QueryRow(s.ctx, `SELECT coalesce(max(merges), 0) FROM merge_counts WHERE organization = $1`, s.organization).Scan(&s.merges); err != nil {
		return err
	}
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
