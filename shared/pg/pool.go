package pg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

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

// A Beginner is a pool or a connection.
type Beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
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

// An Organization is the id of the one whose rows a query may see. As a type
// of its own it excludes other ids: a string becomes one only by a conversion.
type Organization string

// everyOrganization means all organizations in row level security policies.
const everyOrganization = "*"

// Check refuses what can't be an organization's id.
func (o Organization) Check() error {
	if o == "" || o == everyOrganization || !utf8.ValidString(string(o)) || strings.ContainsRune(string(o), 0) {
		return fmt.Errorf("cannot act as an organization without its id: %q is none", string(o))
	}
	return nil
}

// AsOrganization restricts the rest of the transaction to one
// organization's rows. Every request path starts with it; row level
// security is forced, so a forgotten WHERE shows no foreign row.
func AsOrganization(ctx context.Context, tx pgx.Tx, organization Organization) error {
	if err := organization.Check(); err != nil {
		return err
	}
	return setOrganization(ctx, tx, string(organization))
}

// QueueAsOrganization is AsOrganization in a batch, whose next queries see
// its rows.
func QueueAsOrganization(batch *pgx.Batch, organization Organization) error {
	if err := organization.Check(); err != nil {
		return err
	}
	batch.Queue(selectOrganization, string(organization))
	return nil
}

var escapeLiteral = strings.NewReplacer(`\`, `\\`, `'`, `''`)

// beginAs begins a transaction that acts as an organization, in one exchange.
// begin is BEGIN with its options.
func beginAs(begin, organization string) pgx.TxOptions {
	literal := "E'" + escapeLiteral.Replace(organization) + "'"
	return pgx.TxOptions{BeginQuery: begin + `; SELECT set_config('weir.organization', ` + literal + `, true)`}
}

// AsSystem lets the rest of the transaction see the rows of every
// organization: for consumers, relays and operators.
func AsSystem(ctx context.Context, tx pgx.Tx) error {
	return setOrganization(ctx, tx, everyOrganization)
}

// InTxAsSystem is InTx with AsSystem.
func InTxAsSystem(ctx context.Context, on Beginner, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, on, beginAs("BEGIN", everyOrganization), fn)
}

// InWatchedTxAsSystem is InTxAsSystem for a transaction that the database ends
// once the client says nothing for so long, to the millisecond.
func InWatchedTxAsSystem(ctx context.Context, on Beginner, silence time.Duration, fn func(tx pgx.Tx) error) error {
	options := beginAs("BEGIN", everyOrganization)
	options.BeginQuery += fmt.Sprintf(`, set_config('idle_in_transaction_session_timeout', '%d', true)`, silence.Milliseconds())
	return pgx.BeginTxFunc(ctx, on, options, fn)
}

// ReadAsSystem runs fn in a read-only transaction that sees the rows of every
// organization.
func ReadAsSystem(ctx context.Context, on Beginner, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, on, beginAs("BEGIN READ ONLY", everyOrganization), fn)
}

// SnapshotAsSystem is Snapshot with AsSystem.
func SnapshotAsSystem(ctx context.Context, on Beginner, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, on, beginAs("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", everyOrganization), fn)
}

// ReadAs runs fn in a read-only transaction that sees one organization's rows.
func ReadAs(ctx context.Context, pool *pgxpool.Pool, organization Organization, fn func(tx pgx.Tx) error) error {
	if err := organization.Check(); err != nil {
		return err
	}
	return pgx.BeginTxFunc(ctx, pool, beginAs("BEGIN READ ONLY", string(organization)), fn)
}

// ReadBatch sends queries for one organization's rows in one snapshot, with
// the transaction around them, in a single exchange: on a busy machine each
// exchange waits for a processor. After an error it closes the connection.
func ReadBatch(ctx context.Context, pool *pgxpool.Pool, organization Organization, queue func(batch *pgx.Batch)) error {
	if err := organization.Check(); err != nil {
		return err
	}
	var batch pgx.Batch
	batch.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	batch.Queue(selectOrganization, string(organization))
	queue(&batch)
	batch.Queue(`COMMIT`)
	return pool.SendBatch(ctx, &batch).Close()
}

const selectOrganization = `SELECT set_config('weir.organization', $1, true)`

func setOrganization(ctx context.Context, tx pgx.Tx, value string) error {
	if _, err := tx.Exec(ctx, selectOrganization, value); err != nil {
		return fmt.Errorf("cannot act as organization %q: %w", value, err)
	}
	return nil
}

// IsUnique reports whether err violates a unique index or primary key.
func IsUnique(err error) bool {
	return code(err) == "23505"
}

// IsReferenced reports that a row can't be deleted because another
// table refers to it.
func IsReferenced(err error) bool {
	return code(err) == "23503"
}

// IsTransient reports whether the same transaction may succeed later:
// serialization failure, deadlock, lock timeout, or an unavailable
// database. Such an error never parks or refuses anything.
func IsTransient(err error) bool {
	switch code(err) {
	case "40001", "40P01", "55P03":
		return true
	}
	return isUnavailable(err)
}

// isUnavailable reports whether the database was unreachable,
// shutting down, or out of connections or space.
func isUnavailable(err error) bool {
	if sqlstate := code(err); sqlstate != "" {
		return class(sqlstate) == "08" || class(sqlstate) == "53" || class(sqlstate) == "57" || sqlstate == "25006"
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connect) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err)
}

// IsTimeout reports whether a statement exceeded its timeout.
func IsTimeout(err error) bool {
	return code(err) == "57014"
}

// IsData reports whether the database refused a value itself (SQLSTATE
// class 22, 23 or 54): a retry can't help.
func IsData(err error) bool {
	switch class(code(err)) {
	case "22", "23", "54":
		return true
	}
	return false
}

func code(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

func class(sqlstate string) string {
	if len(sqlstate) < 2 {
		return ""
	}
	return sqlstate[:2]
}

// Measure shows the use of pools, each named by its purpose, such as "writes".
func Measure(registerer prometheus.Registerer, pools map[string]*pgxpool.Pool) {
	if registerer != nil {
		registerer.MustRegister(poolStats(pools))
	}
}

// poolStats collects the state of pools at a scrape.
type poolStats map[string]*pgxpool.Pool

var (
	poolConnections = prometheus.NewDesc("weir_postgres_connections", "Connections to PostgreSQL: used by a transaction, or idle.", []string{"pool", "state"}, nil)
	poolLimit       = prometheus.NewDesc("weir_postgres_connections_limit", "How many connections to PostgreSQL a pool may have.", []string{"pool"}, nil)
	poolWaits       = prometheus.NewDesc("weir_postgres_connection_waits_total", "Waits for a free connection or a new one.",
		[]string{"pool"}, nil)
	poolWaited = prometheus.NewDesc("weir_postgres_connection_wait_seconds_total", "How long they waited in all.", []string{"pool"}, nil)
)

func (poolStats) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{poolConnections, poolLimit, poolWaits, poolWaited} {
		out <- desc
	}
}

func (s poolStats) Collect(out chan<- prometheus.Metric) {
	for name, pool := range s {
		stat := pool.Stat()
		gauge := func(desc *prometheus.Desc, value int32, labels ...string) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), append([]string{name}, labels...)...)
		}
		gauge(poolConnections, stat.AcquiredConns(), "used")
		gauge(poolConnections, stat.IdleConns(), "idle")
		gauge(poolLimit, stat.MaxConns())
		out <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, float64(stat.EmptyAcquireCount()), name)
		out <- prometheus.MustNewConstMetric(poolWaited, prometheus.CounterValue, stat.EmptyAcquireWaitTime().Seconds(), name)
	}
}

// ClockAhead returns how far this machine's clock is ahead of the
// database's, which all replicas share.
func ClockAhead(ctx context.Context, pool *pgxpool.Pool, machine func() time.Time) (time.Duration, error) {
	var database time.Time
	if err := pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&database); err != nil {
		return 0, fmt.Errorf("cannot read the clock of the database: %w", err)
	}
	return machine().Sub(database), nil
}
