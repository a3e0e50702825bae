package relay

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A livenessLock shows others that the process of a relay lives: a connection to the database that holds an advisory lock. When the
// process ends, however it does, the operating system closes the connection, and the next relay need not wait for the lease to expire.
// The lease stays what decides between two that both live.
type livenessLock struct {
	conn *pgx.Conn
}

// lockKey is the advisory lock of a relay, by its name and its owner.
func lockKey(name, owner string) string {
	return `hashtext('weir relay ' || current_schema() || ' ' || ` + name + `), hashtext(` + owner + `)`
}

// releaseTimeout is how long closing a connection may take that nobody needs any more.
const releaseTimeout = time.Second

// open connects and takes the lock, unless it is held. The lease is taken over this connection, so that nobody ever sees a lease without
// the lock of its relay. Should the keys of two locks collide, a dead relay only seems to live for longer.
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
