package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/compression"
	"github.com/weirlog/weir/shared/contract"
)

// A claim binds an idempotency key to a batch from a time on.
type claim struct {
	batch  string
	digest string
	at     time.Time
}

// covers reports whether at is in the claim's window. Acceptance times of
// a partition are not quite in order, so the window extends both ways.
func (c claim) covers(at time.Time) bool {
	return at.Sub(c.at).Abs() < IdempotencyWindow
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
		if held[i].batch != record.Batch && held[i].covers(record.Time) {
			return &held[i]
		}
	}
	return nil
}

// claim binds a record's idempotency key, if any, to its batch.
func (c *claims) claim(record *contract.LogsAccepted) {
	if record.Idempotency != "" {
		c.of[record.Idempotency] = append(c.of[record.Idempotency], claim{batch: record.Batch, digest: record.Digest, at: record.Time})
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

// save stores new claims. It ignores a conflict with a concurrent
// claim: that is of a part of this request or another.
func (c *claims) save(ctx context.Context, tx pgx.Tx) error {
	if len(c.made.keys) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO inbox_idempotency (idempotency, accepted_at, batch, digest)
		SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::text[]::uuid[], $4::text[]) ON CONFLICT DO NOTHING`,
		c.made.keys, c.made.times, c.made.batches, c.made.digests)
	return err
}

// heldPage is how many parts of a request are read at once, each less
// than a megabyte.
const heldPage = 8

// maxLines exceeds the lines of any part, in bytes.
const maxLines = 1 << 30

// packed compresses kept lines.
var packed = sync.OnceValue(func() *compression.Codec { return compression.New(maxLines) })

// hold keeps parts of incomplete requests.
func hold(ctx context.Context, tx pgx.Tx, records []contract.LogsAccepted) error {
	var batch pgx.Batch
	for i := range records {
		record := &records[i]
		headers, err := json.Marshal(record.Headers())
		if err != nil {
			return fmt.Errorf("cannot encode the headers of %s: %w", record.ID(), err)
		}
		var lines []byte
		if record.Lines != nil {
			lines = packed().Pack(record.Lines)
		}
		batch.Queue(`INSERT INTO inbox_held (organization, project, batch, part, accepted_at, headers, lines) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			record.Organization, record.Project, record.Batch, record.Part, record.Time, headers, lines)
	}
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// forget deletes the kept parts of the records' requests.
func forget(ctx context.Context, tx pgx.Tx, records ...*contract.LogsAccepted) error {
	var batch pgx.Batch
	for _, record := range records {
		batch.Queue(`DELETE FROM inbox_held WHERE organization = $1 AND batch = $2`, record.Organization, record.Batch)
	}
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// loadHeld reads the next kept parts of a record's request after one of them.
func loadHeld(ctx context.Context, tx pgx.Tx, record *contract.LogsAccepted, after int) ([]contract.LogsAccepted, error) {
	rows, err := tx.Query(ctx, `SELECT headers, lines FROM inbox_held WHERE organization = $1 AND batch = $2 AND part > $3 ORDER BY part LIMIT $4`,
		record.Organization, record.Batch, after, heldPage)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (contract.LogsAccepted, error) {
		var headers map[string]string
		var lines []byte
		if err := row.Scan(&headers, &lines); err != nil {
			return contract.LogsAccepted{}, err
		}
		if lines != nil {
			var err error
			if lines, err = packed().Unpack(lines, nil); err != nil {
				return contract.LogsAccepted{}, fmt.Errorf("cannot decode the lines of %s: %w", headers[contract.HeaderID], err)
			}
		}
		return contract.ParseLogsAccepted(func(name string) string { return headers[name] }, lines)
	})
}
