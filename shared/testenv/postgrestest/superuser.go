package postgrestest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Superuser runs statements on URL's server as a superuser, such as
// granting rights to another role.
func Superuser(t testing.TB, statements ...string) {
	t.Helper()
	withAdmin(t, adminURL(t), func(ctx context.Context, conn *pgx.Conn) error { return execAll(ctx, conn, statements...) })
}
