package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// Open returns a pool on the test's own database, with schema migrated,
// as the serving role: it has only the sets' rights. Both are removed
// with the test.
func Open(t testing.TB, schema string, sets ...pg.MigrationSet) *pgxpool.Pool {
	t.Helper()
	return open(t, URL(t, schema, sets...), schema)
}

func open(t testing.TB, url, schema string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), url, schema)
	testenv.Must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// URL returns the address of such a database for that role. The
// migrations run once for all tests with the same sets.
func URL(t testing.TB, schema string, sets ...pg.MigrationSet) string {
	t.Helper()
	return postgrestest.Serving(Owned(t, schema, sets...))
}

// OpenOwned is Open as the role that owns the schema.
func OpenOwned(t testing.TB, schema string, sets ...pg.MigrationSet) *pgxpool.Pool {
	t.Helper()
	return open(t, Owned(t, schema, sets...), schema)
}

// Owner returns a pool on the database of an Open one, as the role that
// owns the schema: for tests that spoil what serving can't.
func Owner(t testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	config := pool.Config().ConnConfig
	return open(t, postgrestest.Owner(config.ConnString()), config.RuntimeParams["search_path"])
}

// Owned is URL for the role that owns the schema.
func Owned(t testing.TB, schema string, sets ...pg.MigrationSet) string {
	t.Helper()
	return postgrestest.Filled(t, schema+"_"+digest(t, sets), func(ctx context.Context, url string) error {
		return fill(ctx, url, pg.Schema{Name: schema, Migrations: sets})
	})
}

func fill(ctx context.Context, url string, schema pg.Schema) error {
	pool, err := pg.OpenMigrated(ctx, url, schema.Name, schema.Migrations...)
	if err != nil {
		return err
	}
	defer pool.Close()
	serving, err := pgx.ParseConfig(postgrestest.Serving(url))
	if err != nil {
		return err
	}
	return pg.Grant(ctx, pool, schema, serving.User)
}

// digest changes with any migration or right.
func digest(t testing.TB, sets []pg.MigrationSet) string {
	t.Helper()
	sum := sha256.New()
	for _, set := range sets {
		files, err := set.Files()
		testenv.Must(t, err)
		for _, file := range files {
			text, err := fs.ReadFile(set.FS, file)
			testenv.Must(t, err)
			fmt.Fprintf(sum, "%s %s %d\n%s", set.Name, file, len(text), text)
		}
		fmt.Fprintln(sum, set.Rights)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// Statements counts the statements of a pool, also those of a batch,
// without copies. Safe for concurrent use.
type Statements struct{ sent atomic.Int64 }

// Counted returns a pool on the same database whose statements are counted.
func Counted(t testing.TB, pool *pgxpool.Pool) (*pgxpool.Pool, *Statements) {
	t.Helper()
	config, counter := pool.Config(), &Statements{}
	config.ConnConfig.Tracer = counter
	counted, err := pgxpool.NewWithConfig(t.Context(), config)
	testenv.Must(t, err)
	t.Cleanup(counted.Close)
	return counted, counter
}

// Of returns how many statements do sends.
func (s *Statements) Of(do func()) int64 {
	before := s.sent.Load()
	do()
	return s.sent.Load() - before
}

// TraceQueryStart counts a statement.
func (s *Statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.sent.Add(1)
	return ctx
}

// TraceQueryEnd does nothing.
func (*Statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart does nothing: the batch's statements are counted.
func (*Statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery counts a statement of a batch.
func (s *Statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
	s.sent.Add(1)
}

// TraceBatchEnd does nothing.
func (*Statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
