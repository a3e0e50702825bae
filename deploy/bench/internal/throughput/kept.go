package throughput

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/measure"
)

// kept is how many bytes an installation stores: in one copy of the log, and
// in the tables of the log store, groups and books with their indexes.
type kept struct {
	bytes       [4]int64
	connections int   // to PostgreSQL
	wal         int64 // that PostgreSQL has written to its log so far
}

// each returns what each of n entries has added since before.
func (k kept) each(before kept, n int64) kept {
	for i := range k.bytes {
		k.bytes[i] = (k.bytes[i] - before.bytes[i]) / max(1, n)
	}
	k.wal = (k.wal - before.wal) / max(1, n)
	return k
}

// String shows the bytes; the log's are unknown if the broker is elsewhere.
func (k kept) String() string {
	text := fmt.Sprintf("%d B / %d B / %d B / %d B", k.bytes[0], k.bytes[1], k.bytes[2], k.bytes[3])
	if k.bytes[0] == 0 {
		return "-" + strings.TrimPrefix(text, "0 B")
	}
	return text
}

const keptBytes = `SELECT coalesce(sum(bytes) FILTER (WHERE schema = 'ingest'), 0), coalesce(sum(bytes) FILTER (WHERE schema = 'grouping'), 0),
	coalesce(sum(bytes) FILTER (WHERE schema = 'ledger'), 0),
	(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()),
	pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
	FROM (SELECT n.nspname AS schema, pg_total_relation_size(c.oid)::bigint AS bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r') AS tables`

// keptNow measures the files and the database.
func (r *run) keptNow(ctx context.Context) (k kept, err error) {
	conn, err := pgx.Connect(ctx, r.database)
	if err != nil {
		return k, err
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, keptBytes).Scan(&k.bytes[1], &k.bytes[2], &k.bytes[3], &k.connections, &k.wal); err != nil {
		return k, err
	}
	// The log's segments, without preallocated indexes; 0 if the broker is elsewhere.
	files, err := measure.Bytes(r.dir, func(path string) string {
		if strings.HasPrefix(filepath.Base(filepath.Dir(path)), contract.TopicLogs+"-") && !strings.HasSuffix(path, "index") {
			return contract.TopicLogs
		}
		return ""
	})
	k.bytes[0] = files[contract.TopicLogs]
	return k, err
}
