package prune

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// sizes measures a schema's tables on disk, so that a failing bound is seen.
type sizes struct{ bytes *prometheus.GaugeVec }

func newSizes(registerer prometheus.Registerer) *sizes {
	return &sizes{promauto.With(registerer).NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_table_bytes", Help: "Size of a table on disk with its indexes and partitions, as of the last run.",
	}, []string{"table"})}
}

// tableSizes counts partitions, and theirs, to their table.
const tableSizes = `SELECT coalesce(root.relname, c.relname), sum(pg_total_relation_size(c.oid))::bigint
	FROM pg_class c LEFT JOIN pg_class root ON root.oid = pg_partition_root(c.oid)
	WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') GROUP BY 1`

func (s *sizes) measure(ctx context.Context, pool *pgxpool.Pool) error {
	rows, err := pool.Query(ctx, tableSizes)
	if err != nil {
		return fmt.Errorf("cannot measure the tables: %w", err)
	}
	var table string
	var bytes *int64 // null: the partition was just dropped
	_, err = pgx.ForEachRow(rows, []any{&table, &bytes}, func() error {
		if bytes != nil {
			s.bytes.WithLabelValues(table).Set(float64(*bytes))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot measure the tables: %w", err)
	}
	return nil
}
