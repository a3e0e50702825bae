package postgrestest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Superuser runs statements on the server of URL as a role that may do
// everything, such as giving another role rights.
func Superuser(t testing.TB, statements ...string) {
	t.Helper()
	withAdmin(t, adminURL(t), func(ctx context.Context, conn *pgx.Conn) error { return execAll(ctx, conn, statements...) })
}
