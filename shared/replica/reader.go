package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/process"
)

// A Reader reads from a replica if it can. A nil one has none. It is
// safe for concurrent use.
type Reader struct {
	pool   *pgxpool.Pool
	wait   time.Duration
	health *health
}

// Options configure a Reader.
type Options struct {
	Schema  string
	Conns   int // to the replica at most
	Clock   func() time.Time
	Metrics prometheus.Registerer
	Logger  *slog.Logger
}

// Open returns the reader of a replica, which it connects to on first
// use; nil if none is set.
func Open(ctx context.Context, config Config, options Options) (*Reader, error) {
	health := newHealth(10*config.wait(), options) // also without a replica: its metric is documented
	if config.DatabaseURL == "" {
		return nil, nil //nolint:nilnil // a nil Reader reads from the primary
	}
	pool, err := pg.OpenReaders(ctx, config.DatabaseURL.Reveal(), options.Schema, options.Conns)
	if err != nil {
		return nil, err
	}
	return &Reader{pool: pool, wait: config.wait(), health: health}, nil
}

// Close closes the connections.
func (r *Reader) Close() {
	if r != nil {
		r.pool.Close()
	}
}

// Check returns why the replica can't be read from now.
func (r *Reader) Check(ctx context.Context, primary *pgxpool.Pool) error {
	conn, err := r.current(ctx, primary)
	if err == nil {
		conn.Release()
	}
	return err
}

// Snapshot is pg.Snapshot at the replica, or else at the primary. If
// the replica cancels a read, fn runs a second time.
func (r *Reader) Snapshot(ctx context.Context, primary *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	if r == nil || r.health.rests() {
		return pg.Snapshot(ctx, primary, fn)
	}
	answered, err := r.answer(ctx, primary, fn)
	if answered || ctx.Err() != nil {
		return err
	}
	return pg.Snapshot(ctx, primary, fn)
}

// answer reads from the replica. Its error counts only if the replica answered.
func (r *Reader) answer(ctx context.Context, primary *pgxpool.Pool, fn func(tx pgx.Tx) error) (answered bool, err error) {
	conn, err := r.current(ctx, primary)
	if err != nil {
		r.health.failed(ctx, err)
		return false, err
	}
	r.health.reached()
	defer conn.Release()
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn)
	if err != nil && (conn.Conn().IsClosed() || pg.IsTransient(err)) && !pg.IsTimeout(err) {
		r.health.interrupted()
		return false, err
	}
	r.health.answered()
	return true, err
}

// current returns a connection to a server that has all that the
// primary has now.
func (r *Reader) current(ctx context.Context, primary *pgxpool.Pool) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.wait)
	defer cancel()
	at, err := positionOf(ctx, primary)
	if err != nil {
		return nil, err
	}
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if err := at.await(ctx, conn); err != nil {
		conn.Release()
		return nil, err
	}
	return conn, nil
}

// URLVariable is the setting for the address of the replica.
const URLVariable = "WEIR_REPLICA_DATABASE_URL"

// Config is a replica's address, and how long reads wait for it.
type Config struct {
	DatabaseURL httpapi.Secret `help:"Postgres URL of a standby that answers what is heavy to read. Empty: the database itself does." env:"WEIR_REPLICA_DATABASE_URL" default:""`
	Wait        time.Duration  `help:"How long such a read waits until the standby is reached and has all that the database has; then the database answers." env:"WEIR_REPLICA_WAIT" default:"500ms"`
}

const defaultWait = 500 * time.Millisecond

// Validate returns what is wrong with the settings. It shows no secret.
func (c Config) Validate() error {
	var errs []error
	if c.DatabaseURL != "" {
		errs = append(errs, process.CheckDatabaseURL(URLVariable, c.DatabaseURL.Reveal()))
	}
	if c.Wait < 0 {
		errs = append(errs, fmt.Errorf("WEIR_REPLICA_WAIT is %s: it can't be negative", c.Wait))
	}
	return errors.Join(errs...)
}

func (c Config) wait() time.Duration { return cmp.Or(c.Wait, defaultWait) }

// A querier is a connection, or a pool of them.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// A position is how far a server has written its log. Each fail-over
// begins a timeline, on which the same number has another meaning.
type position struct {
	server, lsn string
	timeline    int
}

func positionOf(ctx context.Context, primary querier) (at position, err error) {
	err = primary.QueryRow(ctx, `SELECT system_identifier::text, lsn::text, ('x' || left(pg_walfile_name(lsn), 8))::bit(32)::int
		FROM pg_control_system(), pg_current_wal_flush_lsn() AS lsn`).Scan(&at.server, &at.lsn, &at.timeline)
	return at, err
}

// A state is a replica's, as far as a read needs it.
type state struct {
	role     string
	bypasses bool // row level security
	server   string
	timeline int // at its last checkpoint
	standby  bool
	current  bool // it has replayed a position
}

// look asks a server whether it has replayed a position.
func (p position) look(ctx context.Context, replica querier) (s state, err error) {
	err = replica.QueryRow(ctx, `SELECT rolname, rolsuper OR rolbypassrls, system_identifier::text, timeline_id, pg_is_in_recovery(),
		coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)
		FROM pg_roles, pg_control_system(), pg_control_checkpoint() WHERE rolname = current_user`, p.lsn).
		Scan(&s.role, &s.bypasses, &s.server, &s.timeline, &s.standby, &s.current)
	return s, err
}

var errBehind = errors.New("the replica lacks what the primary has")

// usable returns why a read may never go there, however long it waits.
func (p position) usable(s state) error {
	switch {
	case s.bypasses:
		return fmt.Errorf("role %q at the replica bypasses row level security, which keeps tenants apart: name an ordinary one in %s", s.role, URLVariable)
	case s.server != p.server || !s.standby:
		return fmt.Errorf("the server of %s is no standby of the database", URLVariable)
	case s.timeline != p.timeline:
		return fmt.Errorf("the standby of %s is on timeline %d, the database on %d: it is used after a checkpoint there; otherwise recreate it",
			URLVariable, s.timeline, p.timeline)
	}
	return nil
}

// longestPause is the longest time between two looks.
const longestPause = 16 * time.Millisecond

// await waits until a server has replayed the position. If the time
// ends during a query, the replica counts as behind.
func (p position) await(ctx context.Context, replica querier) error {
	err := p.reached(ctx, replica)
	for pause := time.Millisecond; errors.Is(err, errBehind) && ctx.Err() == nil; pause = min(2*pause, longestPause) {
		lifecycle.Pause(ctx, pause)
		if again := p.reached(ctx, replica); again == nil || ctx.Err() == nil {
			err = again
		}
	}
	return err
}

// reached returns why a read may not go there now.
func (p position) reached(ctx context.Context, replica querier) error {
	s, err := p.look(ctx, replica)
	if err != nil {
		return err
	}
	if err := p.usable(s); err != nil || s.current {
		return err
	}
	return errBehind
}

// A health decides whether a replica is asked. After a failure it
// rests, so that few reads wait in vain.
type health struct {
	rest    time.Duration
	clock   func() time.Time
	logger  *slog.Logger
	reads   *prometheus.CounterVec
	resting atomic.Int64 // its end, in nanoseconds since 1970; 0 if the replica was reached after its last failure
	failing atomic.Bool
}

func newHealth(rest time.Duration, options Options) *health {
	return &health{rest: rest, clock: options.Clock, logger: options.Logger, reads: promauto.With(options.Metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "weir_postgres_replica_reads_total",
		Help: "Reads for the replica: it answered, or the primary did, as the replica was behind, failed, cancelled the read, or rests for a moment after that.",
	}, []string{"outcome"})}
}

func (h *health) count(outcome string) { h.reads.WithLabelValues(outcome).Inc() }

// rests reports whether a read must do without the replica. When a rest ends,
// one read tries, and the others do without until it has reached the replica.
func (h *health) rests() bool {
	now, until := h.clock().UnixNano(), h.resting.Load()
	rests := now < until || until != 0 && !h.resting.CompareAndSwap(until, now+int64(h.rest))
	if rests {
		h.count("rests")
	}
	return rests
}

// failed notes that a read could not begin. If the reader's context
// ended, the replica is not to blame: another read may try.
func (h *health) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		if until := h.resting.Load(); until != 0 {
			h.resting.CompareAndSwap(until, h.clock().UnixNano())
		}
		return
	}
	h.resting.Store(h.clock().Add(h.rest).UnixNano())
	if errors.Is(err, errBehind) {
		h.count("behind")
	} else {
		h.count("failed")
	}
	if !h.failing.Swap(true) {
		h.logger.Warn("the database answers in place of its replica", slog.String("error", err.Error()))
	}
}

// interrupted notes that the replica cancelled a read, as it does when
// the read needs rows that the primary has removed.
func (h *health) interrupted() { h.count("cancelled") }

func (h *health) answered() { h.count("answered") }

// reached notes that a read can begin.
func (h *health) reached() {
	h.resting.Store(0)
	if h.failing.Swap(false) {
		h.logger.Info("the replica answers again")
	}
}
