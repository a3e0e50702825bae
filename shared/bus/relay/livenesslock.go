package relay

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A livenessLock shows that a relay's process lives: a database
// connection with an advisory lock. When the process ends in any way,
// the operating system closes the connection, and the next relay need
// not wait for the lease. Between two live relays the lease decides.
type livenessLock struct {
	conn *pgx.Conn
}

// lockKey returns the advisory lock of a relay, by its name and its owner.
func lockKey(name, owner string) string {
	return `hashtext('weir relay ' || current_schema() || ' ' || ` + name + `), hashtext(` + owner + `)`
}

// releaseTimeout limits the closing of an unneeded connection.
const releaseTimeout = time.Second

// open connects and takes the lock, unless it holds it. The lease is
// taken over this connection, so that no lease is without its lock. If
// the keys of two locks collide, a dead relay only seems to live longer.
func (l *livenessLock) open(ctx context.Context, pool *pgxpool.Pool, name, owner string) (*pgx.Conn, error) {
	if l.conn != nil && !l.conn.IsClosed() {
		return l.conn, nil
	}
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	l.conn = conn
	if _, err := conn.Exec(ctx, `SELECT pg_try_advisory_lock(`+lockKey(`$1`, `$2`)+`)`, name, owner); err != nil {
		l.release()
		return nil, err
	}
	return conn, nil
}

// release closes the connection, and with it the lock.
func (l *livenessLock) release() {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	_ = l.conn.Close(ctx)
	l.conn = nil
}
