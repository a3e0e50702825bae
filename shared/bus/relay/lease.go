package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/pg"
)

// lease is the right to publish from a cursor on, for a limited time.
type lease struct {
	epoch  int64
	cursor Cursor
	until  time.Time // by this process's clock, never later than by the database's
}

// A leaseholder has the lease of a relay, or tries to get it. Only the
// goroutine of Run uses it.
type leaseholder struct {
	cfg    Config
	logger *slog.Logger
	owner  string
	held   lease
	lock   livenessLock
	again  *repetition // of messages published before a dead relay's lease was over
	begun  *lease      // under which messages were sent, until the database confirms that it was not lost meanwhile
}

// bounded limits every request to the database, which may go silent without
// closing a connection: an answer after the end of the lease is useless.
func (l *leaseholder) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.cfg.Lease)
}

// hold ensures the lease for at least half its length. An idle relay
// renews it twice in that time, not at every look. p gets the lease's marks.
func (l *leaseholder) hold(ctx context.Context, p *published) (bool, error) {
	began := clock.Now()
	if l.held.until.Sub(began) > l.cfg.Lease/2 {
		return true, nil
	}
	l.held = lease{}
	held, ok, err := l.acquire(ctx, p)
	if err != nil || !ok {
		return false, err
	}
	held.until = began.Add(l.cfg.Lease)
	l.held, p.marks = held, upTo(p.marks, held.cursor)
	return true, nil
}

// acquire takes a free or expired lease, or one whose relay lost its
// livenessLock; or renews its own.
func (l *leaseholder) acquire(ctx context.Context, p *published) (held lease, ok bool, err error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	conn, err := l.lock.open(ctx, l.cfg, l.owner)
	if err != nil {
		return lease{}, false, fmt.Errorf("cannot take the lease: %w", err)
	}
	var early bool
	batch := &pgx.Batch{}
	batch.Queue(asyncCommit)
	batch.Queue(`SELECT owner <> $2 AND expires_at > clock_timestamp() FROM bus_relays WHERE name = $1 FOR UPDATE`, l.cfg.Name, l.owner).
		QueryRow(func(row pgx.Row) error { return ignoreNoRows(row.Scan(&early)) })
	batch.Queue(`
		INSERT INTO bus_relays AS b (name, epoch, owner, expires_at) VALUES ($1, 1, $2, clock_timestamp() + $3::interval)
		ON CONFLICT (name) DO UPDATE
		   SET epoch = CASE WHEN b.owner = $2 THEN b.epoch ELSE b.epoch + 1 END, owner = $2, expires_at = clock_timestamp() + $3::interval
		 WHERE b.owner = $2 OR b.expires_at < clock_timestamp() OR pg_try_advisory_xact_lock(`+lockKey(`b.name`, `b.owner`)+`)
		RETURNING epoch, position, marks`, l.cfg.Name, l.owner, l.cfg.Lease).QueryRow(func(row pgx.Row) error {
		p.marks = nil // else they are merged
		return row.Scan(&held.epoch, &held.cursor.Position, &p.marks)
	})
	err = conn.SendBatch(ctx, batch).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		if l.lock.listens { // nobody hears what gathers there
			l.lock.release()
		}
		return lease{}, false, nil
	}
	if err == nil && l.cfg.Announced && !l.lock.listens {
		err = pg.Listen(ctx, conn)
		l.lock.listens = err == nil
	}
	if err != nil {
		l.lock.release()
		return lease{}, false, fmt.Errorf("cannot take the lease: %w", err)
	}
	if early {
		l.logger.Info("the relay before ended without releasing its lease: going on in its place", "from", held.cursor.Position)
		l.again = &repetition{from: held.cursor, after: clock.Now().Add(l.cfg.Lease)}
	}
	return held, true, nil
}

// asyncCommit lets commits not wait for the disk: what a crash of
// the database loses is published again, with the same ids.
const asyncCommit = `SELECT set_config('synchronous_commit', 'off', true)`

// takeBack moves the cursor to where this relay began to publish under
// a lost lease. The higher epoch keeps the present relay from moving it
// forward before everything is repeated.
func (l *leaseholder) takeBack(ctx context.Context) error {
	if l.begun == nil {
		return nil
	}
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	from := l.begun.cursor
	tag, err := l.cfg.Pool.Exec(ctx, `UPDATE bus_relays SET position = $4, epoch = epoch + 1
		WHERE name = $1 AND NOT (owner = $2 AND epoch = $3) AND position > $4`,
		l.cfg.Name, l.owner, l.begun.epoch, from.Position)
	if err != nil {
		return fmt.Errorf("cannot take the cursor back after the lease was lost: %w", err)
	}
	if tag.RowsAffected() > 0 {
		l.logger.Warn("the lease was lost while messages were in flight: those from this position are published again", "from", from.Position)
	}
	l.begun = nil
	return nil
}

// release lets the next relay begin at once; with messages in flight it
// leaves that to the livenessLock, so that they are published again.
func (l *leaseholder) release(ctx context.Context, inFlight bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	defer l.lock.release()
	if err := l.takeBack(ctx); err != nil {
		l.logger.Warn("cannot end in order", "error", err)
		return
	}
	if inFlight {
		return
	}
	if _, err := l.cfg.Pool.Exec(ctx, `UPDATE bus_relays SET expires_at = '-infinity' WHERE name = $1 AND owner = $2`, l.cfg.Name, l.owner); err != nil {
		l.logger.Debug("cannot give the lease back", "error", err)
	}
}

// stopGrace is how long a relay waits for answers after its context ended.
const stopGrace = time.Second

// inLease returns a context that leaves a quarter of the lease for
// messages in flight, and ends a moment after ctx.
func (l *leaseholder) inLease(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithDeadline(context.WithoutCancel(ctx), l.held.until.Add(-l.cfg.Lease/4))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })
	return inner, func() {
		stop()
		cancel()
	}
}

// ears is the connection over which a relay with the lease hears what is
// announced; nil: it hears nothing.
func (l *leaseholder) ears() *pgx.Conn {
	if conn := l.lock.conn; l.cfg.Announced && conn != nil && !conn.IsClosed() && !l.held.until.IsZero() {
		return conn
	}
	return nil
}

// A repetition says where to repeat from, once a dead relay's messages
// in flight have arrived or never will.
type repetition struct {
	from  Cursor
	after time.Time
}

// repeat goes back, when it is due, to where this relay took over. The
// messages keep their ids.
func (l *leaseholder) repeat() {
	if l.again != nil && clock.Now().After(l.again.after) {
		l.held.cursor.Position = min(l.held.cursor.Position, l.again.from.Position)
		l.again = nil
	}
}

// A livenessLock shows that a relay's process lives: a database
// connection with an advisory lock. When the process ends in any way,
// the operating system closes the connection, and the next relay need
// not wait for the lease. Between two live relays the lease decides.
type livenessLock struct {
	conn    *pgx.Conn
	listens bool // for what is announced to the relay that has the lease
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
func (l *livenessLock) open(ctx context.Context, cfg Config, owner string) (*pgx.Conn, error) {
	if l.conn != nil && !l.conn.IsClosed() {
		return l.conn, nil
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.Pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	l.conn, l.listens = conn, false
	_, err = conn.Exec(ctx, `SELECT pg_try_advisory_lock(`+lockKey(`$1`, `$2`)+`)`, cfg.Name, owner)
	if err != nil {
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
	l.conn, l.listens = nil, false
}
