package inbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
)

// A claim binds an idempotency key to a batch from a time on.
type claim struct {
	batch  string
	digest string
	at     time.Time
	whole  bool  // as far as known; a claim from before migration 3 may belong to a request published in part
	parts  int64 // of the batch that the inbox has, if whole is unknown
}

// covers reports whether at is in the claim's window. Acceptance times of
// a partition are not quite in order, so the window extends both ways.
func (c claim) covers(at time.Time) bool {
	return at.Sub(c.at).Abs() < IdempotencyWindow
}

// binds reports whether a claim excludes a record of another batch. If the
// claim's request may be incomplete, the inbox must have as many of its
// parts as of the record's: half a request must not block a whole one.
func (c claim) binds(record *contract.LogsAccepted) bool {
	return c.covers(record.Time) && (c.whole || c.digest != record.Digest || c.parts >= int64(record.Parts))
}

// judge returns the verdict on a record of another batch that the claim binds.
func (c claim) judge(record *contract.LogsAccepted) Verdict {
	if c.digest == record.Digest {
		return Replayed
	}
	return Reused
}

// claims are those of the records' idempotency keys: the first whole
// request of a key counts.
type claims struct {
	of   map[string][]claim // bounded by the records
	made struct {           // by the records: columns
		keys, batches, digests []string
		times                  []time.Time
	}
}

// other returns the claim of another batch that binds a record; nil:
// its own counts, or none yet.
func (c *claims) other(record *contract.LogsAccepted) *claim {
	held := c.of[record.Idempotency]
	for i := range held {
		if held[i].batch != record.Batch && held[i].binds(record) {
			return &held[i]
		}
	}
	return nil
}

// claim binds a record's idempotency key, if any, to its batch.
func (c *claims) claim(record *contract.LogsAccepted) {
	if record.Idempotency != "" {
		c.of[record.Idempotency] = append(c.of[record.Idempotency], claim{batch: record.Batch, digest: record.Digest, at: record.Time, whole: true})
		made := &c.made
		made.keys, made.times = append(made.keys, record.Idempotency), append(made.times, record.Time)
		made.batches, made.digests = append(made.batches, record.Batch), append(made.digests, record.Digest)
	}
}

// loadClaims reads the claims of the records' idempotency keys.
func loadClaims(ctx context.Context, tx pgx.Tx, records []contract.LogsAccepted) (*claims, error) {
	c := &claims{of: map[string][]claim{}}
	var keys []string
	for i := range records {
		if records[i].Idempotency != "" {
			keys = append(keys, records[i].Idempotency)
		}
	}
	if keys == nil {
		return c, nil
	}
	rows, err := tx.Query(ctx, `SELECT idempotency, batch::text, digest, accepted_at, whole FROM inbox_idempotency
		WHERE idempotency = ANY($1) ORDER BY idempotency, accepted_at`, keys)
	if err != nil {
		return nil, err
	}
	var key string
	var loaded claim
	_, err = pgx.ForEachRow(rows, []any{&key, &loaded.batch, &loaded.digest, &loaded.at, &loaded.whole}, func() error {
		c.of[key] = append(c.of[key], loaded)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, c.countParts(ctx, tx)
}

// countParts counts the parts of requests that may be incomplete. Each
// query is planned for one day, and locks no other.
func (c *claims) countParts(ctx context.Context, tx pgx.Tx) error {
	for _, held := range c.of {
		for i := range held {
			if held[i].whole {
				continue
			}
			err := tx.QueryRow(ctx, `SELECT count(*) FROM inbox WHERE day = $1 AND batch = $2::text::uuid`,
				pgx.QueryExecModeCacheDescribe, held[i].at.UTC().Truncate(24*time.Hour), held[i].batch).Scan(&held[i].parts)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// save stores new claims. It ignores a conflict with a concurrent
// claim: that is of a part of this request or another.
func (c *claims) save(ctx context.Context, tx pgx.Tx) error {
	if len(c.made.keys) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO inbox_idempotency (idempotency, accepted_at, batch, digest, whole)
		SELECT *, true FROM unnest($1::text[], $2::timestamptz[], $3::text[]::uuid[], $4::text[])
		ON CONFLICT (idempotency, accepted_at) DO UPDATE SET batch = excluded.batch, digest = excluded.digest, whole = true`,
		c.made.keys, c.made.times, c.made.batches, c.made.digests)
	return err
}
