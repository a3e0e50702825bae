package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// SaveRefusals stores refusals. One that is stored already, because it was published twice, stays
// as it is.
func SaveRefusals(ctx context.Context, tx pgx.Tx, refusals []ledger.Refusal) error {
	n := len(refusals)
	organizations, requests, projects := make([]string, n), make([]string, n), make([]string, n)
	keys, environments, reasons := make([]string, n), make([]string, n), make([]string, n)
	at, starts, exhausts := make([]time.Time, n), make([]time.Time, n), make([]bool, n)
	bytes, remaining, quotas, counts := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, r := range refusals {
		organizations[i], requests[i], projects[i], keys[i] = r.Organization, r.Cause.Event, r.Cause.Project, r.Cause.Key
		environments[i], reasons[i], at[i], starts[i], exhausts[i] = r.Environment, r.Reason, r.Cause.At, r.PeriodStart, r.Exhausts
		bytes[i], remaining[i], quotas[i], counts[i] = r.Bytes, r.Remaining, r.Quota, r.Requests
	}
	_, err := tx.Exec(ctx, `INSERT INTO refusals
			(organization, at, request, project, key, environment, reason, bytes, remaining, quota, period_start, exhausts, requests)
		SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
			$8::bigint[], $9::bigint[], $10::bigint[], $11::timestamptz[], $12::boolean[], $13::bigint[])
		ON CONFLICT DO NOTHING`,
		organizations, at, requests, projects, keys, environments, reasons, bytes, remaining, quotas, starts, exhausts, counts)
	return err
}
