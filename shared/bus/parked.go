package bus

import (
	"cmp"
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

const (
	headerOrganization = "ce_organization"
	nobodys            = "*" // records of no organization: only the system sees them
	longestReason      = 8 << 10
)

const parkRecord = `
INSERT INTO bus_parked (organization, group_name, topic, partition, record_offset, record_time, key, value, header_names, header_values, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (organization, group_name, topic, partition, record_offset) DO UPDATE SET reason = excluded.reason, parked_at = now()`

// park sets a record aside with the reason, and moves on, in one transaction.
func (a *assignment) park(ctx context.Context, r Record, reason error) error {
	c := a.consumer
	c.logger.Error("record cannot be applied, parking it", "partition", r.Partition, "offset", r.Offset, "error", reason)
	names, values := splitHeaders(r.Headers)
	err := a.persist(ctx, []Record{r}, func(ctx context.Context, tx pgx.Tx, _ []Record) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('weir.organization', '*', true)`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, parkRecord, cmp.Or(storable(r.Header(headerOrganization)), nobodys), c.cfg.Group, r.Topic, r.Partition, r.Offset, r.Time,
			r.Key, r.Value, names, values, storable(reason.Error()))
		return err
	})
	if err == nil {
		c.metrics.parked.Inc()
	}
	return err
}

func splitHeaders(headers []Header) (names []string, values [][]byte) {
	names, values = make([]string, len(headers)), make([][]byte, len(headers))
	for i, h := range headers {
		names[i], values[i] = storable(h.Key), h.Value
	}
	return names, values
}

// storable makes text that Postgres takes: valid UTF-8 without NUL, of bounded length. Parking must not fail on what it parks.
func storable(s string) string {
	if len(s) > longestReason {
		s = s[:longestReason]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
