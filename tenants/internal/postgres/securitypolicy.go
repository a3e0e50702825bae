package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

func setSecurityPolicy(ctx context.Context, tx pgx.Tx, e tenants.SecurityPolicySet) error {
	return exactlyOne(ctx, tx, `
		INSERT INTO security_policies (organization, leaked_keys, plain_http_keys, set_at, passwords_off) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (organization) DO UPDATE SET leaked_keys = $2, plain_http_keys = $3, set_at = $4, passwords_off = $5`,
		e.Organization, e.LeakedKeys, e.PlainHTTPKeys, e.At, e.PasswordsOff)
}

// SecurityPolicy returns the policy of an organization, which exists: the default where it has set none.
func (v *Views) SecurityPolicy(ctx context.Context, as, organization pg.Organization) (tenants.SecurityPolicy, error) {
	policy, err := one(ctx, v, as, pgx.RowToStructByPos[tenants.SecurityPolicy],
		`SELECT organization, leaked_keys, plain_http_keys, set_at, passwords_off FROM security_policies WHERE `+visible+` AND organization = $2`, organization)
	if errors.Is(err, tenants.ErrNotFound) {
		return tenants.DefaultSecurityPolicy(string(organization)), nil
	}
	return policy, err
}
