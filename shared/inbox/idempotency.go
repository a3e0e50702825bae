package inbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
)

// A claim is the batch that stands for an idempotency key from a time on.
type claim struct {
	batch  string
	digest string
	at     time.Time
}

// covers reports whether at falls into the claim's window. Acceptance times of a partition are not quite in order, so the
// window reaches both ways.
func (c claim) covers(at time.Time) bool {
	return at.Sub(c.at).Abs() < IdempotencyWindow
}

// judge returns what a record of another batch counts as that the claim covers.
func (c claim) judge(record *contract.LogsAccepted) Verdict {
	if c.digest == record.Digest {
		return Replayed
	}
	return Reused
}

// claims are those of the idempotency keys of records: the first request of a key that is whole counts.
type claims struct {
	of   map[string][]claim
	made struct { // by the records: columns
		keys, batches, digests []string
		times                  []time.Time
	}
}

// other is the claim of another batch that covers a record; nil where its own counts, or none does yet.
func (c *claims) other(record *contract.LogsAccepted) *claim {
	held := c.of[record.Idempotency]
	for i := range held {
		if held[i].covers(record.Time) && held[i].batch != record.Batch {
			return &held[i]
		}
	}
	return nil
}

// claim makes a record's batch the one that stands for its idempotency key, if it has one.
func (c *claims) claim(record *contract.LogsAccepted) {
	if record.Idempotency != "" {
		c.of[record.Idempotency] = append(c.of[record.Idempotency], claim{record.Batch, record.Digest, record.Time})
		made := &c.made
		made.keys, made.times = append(made.keys, record.Idempotency), append(made.times, record.Time)
		made.batches, made.digests = append(made.batches, record.Batch), append(made.digests, record.Digest)
	}
}

// loadClaims reads what is known of the records' idempotency keys.
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
	rows, err := tx.Query(ctx, `SELECT idempotency, batch::text, digest, accepted_at FROM inbox_idempotency
		WHERE idempotency = ANY($1) ORDER BY idempotency, accepted_at`, keys)
	if err != nil {
		return nil, err
	}
	var key string
	var loaded claim
	_, err = pgx.ForEachRow(rows, []any{&key, &loaded.batch, &loaded.digest, &loaded.at}, func() error {
		c.of[key] = append(c.of[key], loaded)
		return nil
	})
	return c, err
}

// save writes the claims down that were made.
func (c *claims) save(ctx context.Context, tx pgx.Tx) error {
	if len(c.made.keys) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO inbox_idempotency (idempotency, accepted_at, batch, digest)
		SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::text[]::uuid[], $4::text[])`,
		c.made.keys, c.made.times, c.made.batches, c.made.digests)
	return err
}
