package pg_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// A pool shows its connections in use and its limit.
func TestMeasure(t *testing.T) {
	pool, metrics := pgtest.Open(t, "measured"), prometheus.NewRegistry()
	pg.Measure(metrics, map[string]*pgxpool.Pool{"writes": pool})
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(fmt.Sprintf(`
# HELP weir_postgres_connections Connections to PostgreSQL: used by a transaction, or idle.
# TYPE weir_postgres_connections gauge
weir_postgres_connections{pool="writes",state="idle"} %d
weir_postgres_connections{pool="writes",state="used"} 1
# HELP weir_postgres_connections_limit How many connections to PostgreSQL a pool may have.
# TYPE weir_postgres_connections_limit gauge
weir_postgres_connections_limit{pool="writes"} %d
`, pool.Stat().IdleConns(), pool.Config().MaxConns)), "weir_postgres_connections", "weir_postgres_connections_limit"); err != nil {
		t.Error(err)
	}
}
