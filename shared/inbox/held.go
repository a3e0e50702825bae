package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/compression"
	"github.com/weirlog/weir/shared/contract"
)

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
