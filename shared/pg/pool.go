package pg

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/tracing"
)

// defaultMaxConns leaves room for a module's consumers and
// relays beside its requests.
const defaultMaxConns = 8

// Open connects to the database at url and binds every connection to
// schema, which need not exist yet (see Migrate). The url's
// pool_max_conns bounds the pool (default 8). Open fails if the server
// can't be reached.
func Open(ctx context.Context, url, schema string) (*pgxpool.Pool, error) {
	pool, err := OpenLater(ctx, url, schema)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		config := pool.Config().ConnConfig
		return nil, fmt.Errorf("cannot reach the database at %s:%d: %w; %s", config.Host, config.Port, err, Remedy(err))
	}
	return pool, nil
}

// OpenLater is Open for a service that also works without its
// database: it connects on first use.
func OpenLater(ctx context.Context, url, schema string) (*pgxpool.Pool, error) {
	config, err := configure(url, schema, defaultMaxConns)
	if err != nil {
		return nil, err
	}
	return open(ctx, config)
}

// readTimeout limits one statement of a reader.
const readTimeout = 10 * time.Second

// OpenReaders is OpenLater for requests that only read: read-only, with
// a statement timeout, and at most conns connections, none of them
// taken from consumers and writers.
func OpenReaders(ctx context.Context, url, schema string, conns int) (*pgxpool.Pool, error) {
	config, err := configure(url, schema, conns)
	if err != nil {
		return nil, err
	}
	config.MaxConns = min(config.MaxConns, int32(conns))          //nolint:gosec // a few
	if strings.Contains(url, "target_session_attrs=read-write") { // our sessions are read-only on any server
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	config.ConnConfig.RuntimeParams["application_name"] = "weir-" + schema + "-readers"
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	config.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(readTimeout.Milliseconds(), 10)
	return open(ctx, config)
}

// Connections returns the most connections of a module that opens a pool
// and one for so many readers: fewer if the url's pool_max_conns is lower.
func Connections(url string, readers int) int {
	config, err := configure(url, "", defaultMaxConns)
	if err != nil { // nothing can be opened
		return 0
	}
	return int(config.MaxConns) + min(int(config.MaxConns), readers)
}

func configure(url, schema string, conns int) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("cannot read the database URL: %w", err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = int32(conns) //nolint:gosec // a few
	}
	config.BeforeConnect = currentSecrets(url)
	config.ConnConfig.Tracer = tracing.Queries{}
	config.ConnConfig.RuntimeParams["search_path"] = schema
	config.ConnConfig.RuntimeParams["application_name"] = "weir-" + schema
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	return config, nil
}

// currentSecrets reads the url's files again for each new connection
// (passfile, sslrootcert, sslcert, sslkey): replacing them needs no restart.
func currentSecrets(url string) func(context.Context, *pgx.ConnConfig) error {
	return func(_ context.Context, config *pgx.ConnConfig) error {
		now, err := pgx.ParseConfig(url)
		if err != nil {
			return fmt.Errorf("cannot read the database URL or a file that it names: %w", err)
		}
		config.Password, config.TLSConfig, config.Fallbacks = now.Password, now.TLSConfig, now.Fallbacks
		return nil
	}
}

func open(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("cannot open the database: %w", err)
	}
	return pool, nil
}

// refuseBypass fails if the pool's login role bypasses row level
// security: a superuser, or BYPASSRLS.
func refuseBypass(ctx context.Context, pool *pgxpool.Pool) error {
	var role string
	var bypasses bool
	err := pool.QueryRow(ctx, `SELECT rolname, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&role, &bypasses)
	if err != nil {
		return fmt.Errorf("cannot read the login role: %w", err)
	}
	if bypasses {
		return fmt.Errorf("cannot use database role %q: it bypasses row level security, which keeps tenants apart; "+
			"connect as an ordinary one (CREATE ROLE weir LOGIN; ALTER DATABASE … OWNER TO weir)", role)
	}
	return nil
}

// InTx runs fn in one transaction: it commits if fn returns nil, else
// rolls back and returns fn's error.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, pool, fn)
}

// Snapshot runs fn in a read-only transaction in which every
// statement sees the same state.
func Snapshot(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, pool, options, fn)
}
