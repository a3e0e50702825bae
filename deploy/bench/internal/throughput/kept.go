package throughput

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/shared/contract"
)

// Kept is how many bytes an installation stores: in one copy of the
// log, and in the tables of each module with their indexes.
type Kept struct {
	Log, Entries, Groups, Books int64
	Connections                 int // to PostgreSQL
}

// since returns what each entry of the load has added to an earlier state.
func (k Kept) since(before Kept, batches int64) Kept {
	each := func(after, before int64) int64 { return (after - before) / max(1, batches*measure.EntriesPerBatch) }
	return Kept{
		Log: each(k.Log, before.Log), Entries: each(k.Entries, before.Entries), Groups: each(k.Groups, before.Groups), Books: each(k.Books, before.Books),
		Connections: k.Connections,
	}
}

const keptBytes = `SELECT coalesce(sum(bytes) FILTER (WHERE schema = 'ingest'), 0), coalesce(sum(bytes) FILTER (WHERE schema = 'grouping'), 0),
	coalesce(sum(bytes) FILTER (WHERE schema = 'ledger'), 0),
	(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid())
	FROM (SELECT n.nspname AS schema, pg_total_relation_size(c.oid)::bigint AS bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r') AS tables`

// kept measures the files below dir and the database now.
func (r *run) kept(ctx context.Context) (k Kept, err error) {
	conn, err := pgx.Connect(ctx, r.database)
	if err != nil {
		return k, err
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, keptBytes).Scan(&k.Entries, &k.Groups, &k.Books, &k.Connections); err != nil {
		return k, err
	}
	k.Log, err = logBytes(r.dir)
	return k, err
}

// logBytes adds up the log's segments below dir, without preallocated
// indexes; 0 if the broker is elsewhere.
func logBytes(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		partition := filepath.Base(filepath.Dir(path))
		if err != nil || entry.IsDir() || !strings.HasPrefix(partition, contract.TopicLogs+"-") || strings.HasSuffix(path, "index") {
			return ignoreGone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreGone(err)
		}
		bytes += info.Size()
		return nil
	})
	return bytes, err
}

// ignoreGone ignores the error of a file removed meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
