package registry

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func setSecurityPolicy(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.SecurityPolicySet) error {
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO security_policies (organization, leaked_keys, plain_http_keys, set_at, passwords_off) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (organization) DO UPDATE SET leaked_keys = $2, plain_http_keys = $3, set_at = $4, passwords_off = $5`,
		e.Organization, e.LeakedKeys, e.PlainHTTPKeys, e.At, e.PasswordsOff)
}

// SecurityPolicy returns the policy of an existing
// organization: the default if none was set.
func (s Store) SecurityPolicy(ctx context.Context, as, organization pg.Organization) (tenants.SecurityPolicy, error) {
	policy, err := query.One(ctx, s.reader, as, pgx.RowToStructByPos[tenants.SecurityPolicy],
		`SELECT organization, leaked_keys, plain_http_keys, set_at, passwords_off FROM security_policies WHERE `+query.Visible+` AND organization = $2`, organization)
	if errors.Is(err, tenants.ErrNotFound) {
		return tenants.DefaultSecurityPolicy(string(organization)), nil
	}
	return policy, err
}

// SecurityPolicyOf is an organization's present policy.
func SecurityPolicyOf(ctx context.Context, in *query.Reader, organization pg.Organization) (tenants.SecurityPolicy, error) {
	return NewStore(in).SecurityPolicy(ctx, organization, organization)
}
