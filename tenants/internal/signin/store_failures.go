package signin

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

const selectFailures = `SELECT organization, member, failed, refused, networks, since, told_at, refusals_reported_at FROM sign_in_failures `

func scanFailures(row pgx.CollectableRow) (f tenants.SignInFailures, err error) {
	var since, reported, refusals *time.Time
	err = row.Scan(&f.Organization, &f.Member, &f.Failed, &f.Refused, &f.Networks, &since, &reported, &refusals)
	f.Since, f.ReportedAt, f.RefusalsAt = query.OrZero(since), query.OrZero(reported), query.OrZero(refusals)
	return f, err
}

// SignInFailures are a member's unreported failures.
func (s Store) SignInFailures(ctx context.Context, organization pg.Organization, member string) (tenants.SignInFailures, error) {
	failures, err := query.One(ctx, s.reader, organization, scanFailures, selectFailures+`WHERE organization = $1 AND member = $2`, member)
	if errors.Is(err, tenants.ErrNotFound) {
		return tenants.SignInFailures{Organization: string(organization), Member: member}, nil
	}
	return failures, err
}

// DueSignInFailures are at most limit unreported failures,
// of all organizations, last reported before a time.
// Organizations to be deleted wait: their audit is closed.
func (s Store) DueSignInFailures(ctx context.Context, reported time.Time, limit int) ([]tenants.SignInFailures, error) {
	return query.List(ctx, s.reader, tenants.Installation, scanFailures, selectFailures+
		`WHERE `+query.Visible+` AND failed + refused > 0 AND told_at <= $2
			AND EXISTS (SELECT FROM organizations o WHERE o.organization = sign_in_failures.organization AND o.deletion = '')
		ORDER BY told_at LIMIT $3`, reported, limit)
}

// keepSignInFailures stores a member's unreported failures.
func keepSignInFailures(ctx context.Context, tx pgx.Tx, f tenants.SignInFailures) error {
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO sign_in_failures (organization, member, failed, refused, networks, since, told_at, refusals_reported_at)
		VALUES ($1, $2, $3, $4, coalesce($5, '{}'::text[]), $6, $7, $8)
		ON CONFLICT (organization, member) DO UPDATE SET failed = $3, refused = $4, networks = coalesce($5, '{}'::text[]), since = $6, told_at = $7,
			refusals_reported_at = $8`,
		f.Organization, f.Member, f.Failed, f.Refused, f.Networks, query.OrNull(f.Since), query.OrNull(f.ReportedAt), query.OrNull(f.RefusalsAt))
}
