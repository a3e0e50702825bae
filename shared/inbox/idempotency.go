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

// claimAll finds out what each record counts as, and claims the idempotency keys that are free.
func claimAll(ctx context.Context, tx pgx.Tx, records []contract.LogsAccepted) ([]candidate, error) {
	claims, err := loadClaims(ctx, tx, records)
	if err != nil {
		return nil, err
	}
	candidates := make([]candidate, len(records))
	var made newClaims
	for i, record := range records {
		candidates[i] = own(record)
		if record.Idempotency == "" {
			continue
		}
		claimed := find(claims[record.Idempotency], record.Time)
		if claimed != nil {
			candidates[i] = claimed.judge(record)
			continue
		}
		claims[record.Idempotency] = append(claims[record.Idempotency], made.add(record))
	}
	return candidates, made.save(ctx, tx)
}

// own is a record that counts for its own batch.
func own(record contract.LogsAccepted) candidate {
	return candidate{
		part: part{record.Batch, int32(record.Part)}, //nolint:gosec // parts of a request number in the hundreds
		day:  record.Time.UTC(), otherwise: Duplicate,
	}
}

// judge returns what a record counts as whose idempotency key the claim covers.
func (c claim) judge(record contract.LogsAccepted) candidate {
	counts := own(record)
	switch {
	case c.batch == record.Batch:
	case c.digest == record.Digest:
		counts.batch, counts.day, counts.otherwise = c.batch, c.at.UTC(), Replayed
	default:
		counts.barred, counts.otherwise = true, Reused
	}
	return counts
}

func find(claims []claim, at time.Time) *claim {
	for i := range claims {
		if claims[i].covers(at) {
			return &claims[i]
		}
	}
	return nil
}

// loadClaims reads what is known of the records' idempotency keys; nil when none carries one.
func loadClaims(ctx context.Context, tx pgx.Tx, records []contract.LogsAccepted) (map[string][]claim, error) {
	var keys []string
	for _, record := range records {
		if record.Idempotency != "" {
			keys = append(keys, record.Idempotency)
		}
	}
	if keys == nil {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `SELECT idempotency, batch::text, digest, accepted_at FROM inbox_idempotency
		WHERE idempotency = ANY($1) ORDER BY idempotency, accepted_at`, keys)
	if err != nil {
		return nil, err
	}
	claims := map[string][]claim{}
	var key string
	var loaded claim
	_, err = pgx.ForEachRow(rows, []any{&key, &loaded.batch, &loaded.digest, &loaded.at}, func() error {
		claims[key] = append(claims[key], loaded)
		return nil
	})
	return claims, err
}

// newClaims are the claims that records of one transaction make.
type newClaims struct {
	keys, batches, digests []string
	times                  []time.Time
}

func (n *newClaims) add(record contract.LogsAccepted) claim {
	n.keys, n.batches = append(n.keys, record.Idempotency), append(n.batches, record.Batch)
	n.digests, n.times = append(n.digests, record.Digest), append(n.times, record.Time)
	return claim{record.Batch, record.Digest, record.Time}
}

// save inserts all of them in one statement.
func (n *newClaims) save(ctx context.Context, tx pgx.Tx) error {
	if len(n.keys) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO inbox_idempotency (idempotency, accepted_at, batch, digest)
		SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::text[]::uuid[], $4::text[])`, n.keys, n.times, n.batches, n.digests)
	return err
}
