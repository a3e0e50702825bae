package replica

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/pg"
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
