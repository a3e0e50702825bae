package postgrestest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/testenv/fault/faulttest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// Each fault has its effect, and ends.
func TestFaults(t *testing.T) {
	db := postgrestest.Faulty(t)
	exec(t, db.URL, "CREATE TABLE kept AS SELECT 1 AS n")
	faulttest.Each(t, db.Server, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, db.URL)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		var n int
		return conn.QueryRow(ctx, "SELECT n FROM kept").Scan(&n)
	})
}
