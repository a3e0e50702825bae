package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

const (
	// RejectedFor is how long rejected entries are kept.
	RejectedFor = 24 * time.Hour
	// samplesKept is how many samples of a key and code are kept.
	samplesKept = 5
)

// RejectedTables are those of rejected entries, for a prune.Pruner.
func RejectedTables(clock func() time.Time) []prune.Table {
	return []prune.Table{
		prune.Rows{Table: "rejected_counts", Bound: "24 hours, a row for each key, code and hour", Age: "hour", Before: prune.Ago(RejectedFor, clock)},
		prune.Rows{
			Table: "rejected_samples", Bound: "24 hours, the newest 5 of each key and code", Age: "at", Before: prune.Ago(RejectedFor, clock), AppendOnly: true,
		},
	}
}

// SaveRejected adds what was rejected, which is in the order in which all
// replicas save, but for what is deleted. The transaction acts as the system.
func SaveRejected(ctx context.Context, tx pgx.Tx, all []ingest.Rejected) error {
	var organizations []string
	for i := range all {
		if i == 0 || all[i].Organization != all[i-1].Organization {
			organizations = append(organizations, all[i].Organization)
		}
	}
	deleted, err := erasure.FindDeleted(ctx, tx, organizations)
	if err != nil {
		return err
	}
	if err := lock(ctx, tx, "rejected entries", ""); err != nil {
		return err
	}
	var batch pgx.Batch
	for i := range all {
		if !deleted.Has(all[i].Organization, all[i].Project) {
			queueRejected(&batch, &all[i])
		}
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("cannot save what was rejected of %d organizations: %w", len(organizations), err)
	}
	return nil
}

// queueRejected adds to the count, and keeps the newest samples.
func queueRejected(batch *pgx.Batch, r *ingest.Rejected) {
	batch.Queue(`INSERT INTO rejected_counts AS c (organization, project, key, code, hour, entries, last_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (organization, project, key, code, hour) DO UPDATE SET entries = c.entries + EXCLUDED.entries, last_at = greatest(c.last_at, EXCLUDED.last_at)`,
		r.Organization, r.Project, r.Key, string(r.Code), r.LastAt.Truncate(time.Hour), r.Entries, r.LastAt)
	for i, s := range r.Samples {
		batch.Queue(`INSERT INTO rejected_samples (organization, project, key, code, at, place, pointer, detail, fix, text, cut)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING`,
			r.Organization, r.Project, r.Key, string(r.Code), s.At, i, s.Pointer, s.Detail, s.Fix, s.Text, s.Cut)
	}
	if len(r.Samples) > 0 {
		batch.Queue(`DELETE FROM rejected_samples WHERE organization = $1 AND project = $2 AND key = $3 AND code = $4 AND (at, place) < (
			SELECT at, place FROM rejected_samples WHERE organization = $1 AND project = $2 AND key = $3 AND code = $4 ORDER BY at DESC, place DESC OFFSET $5 LIMIT 1)`,
			r.Organization, r.Project, r.Key, string(r.Code), samplesKept-1)
	}
}

// A RejectedFilter selects rejected entries of a project.
type RejectedFilter struct {
	Project string
	Key     string // empty: of any
	Code    string // empty: of any
	Since   time.Time
	After   KeyCode // in the order of both
	Limit   int
}

// A KeyCode is a place in a list of rejected entries.
type KeyCode struct{ Key, Code string }

// RejectedEntries lists what was rejected, by key and code.
func RejectedEntries(ctx context.Context, tx pgx.Tx, organization pg.Organization, filter RejectedFilter) ([]ingest.Rejected, error) {
	rows, err := tx.Query(ctx, `SELECT organization, project, key, code, sum(entries)::bigint, max(last_at) FROM rejected_counts
		WHERE organization = $1 AND project = $2 AND ($3 = '' OR key = $3) AND ($4 = '' OR code = $4) AND (key, code) > ($5, $6) AND hour > $7
		GROUP BY organization, project, key, code ORDER BY key, code LIMIT $8`,
		string(organization), filter.Project, filter.Key, filter.Code, filter.After.Key, filter.After.Code, filter.Since, filter.Limit)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r ingest.Rejected, err error) {
		err = row.Scan(&r.Organization, &r.Project, &r.Key, &r.Code, &r.Entries, &r.LastAt)
		return r, err
	})
	if err != nil || len(found) == 0 {
		return found, err
	}
	return found, addSamples(ctx, tx, organization, filter, found)
}

// addSamples adds their samples to what was rejected.
func addSamples(ctx context.Context, tx pgx.Tx, organization pg.Organization, filter RejectedFilter, found []ingest.Rejected) error {
	places := make(map[KeyCode]*ingest.Rejected, len(found))
	for i := range found {
		places[KeyCode{found[i].Key, string(found[i].Code)}] = &found[i]
	}
	first, last := found[0], found[len(found)-1]
	rows, err := tx.Query(ctx, `SELECT key, code, at, pointer, detail, fix, text, cut FROM rejected_samples
		WHERE organization = $1 AND project = $2 AND (key, code) BETWEEN ($3, $4) AND ($5, $6) AND at > $7 ORDER BY key, code, at DESC, place DESC`,
		string(organization), filter.Project, first.Key, string(first.Code), last.Key, string(last.Code), filter.Since)
	if err != nil {
		return err
	}
	var of KeyCode
	var s ingest.RejectedSample
	_, err = pgx.ForEachRow(rows, []any{&of.Key, &of.Code, &s.At, &s.Pointer, &s.Detail, &s.Fix, &s.Text, &s.Cut}, func() error {
		if r := places[of]; r != nil && len(r.Samples) < samplesKept {
			r.Samples = append(r.Samples, s)
		}
		return nil
	})
	return err
}
