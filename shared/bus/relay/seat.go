package relay

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A seat is how others see that the process of a relay is there: a connection to the database that holds an advisory lock. When the
// process ends, however it does, the operating system closes the connection, and the next relay need not wait for the lease to be
// over. The lease stays what decides between two that both live.
type seat struct {
	conn *pgx.Conn
}

// seatOf is the advisory lock of a relay, by its name and its owner.
func seatOf(name, owner string) string {
	return `hashtext('weir relay ' || current_schema() || ' ' || ` + name + `), hashtext(` + owner + `)`
}

// leaveTimeout is how long closing a connection may take that nobody needs any more.
const leaveTimeout = time.Second

// open connects where it is not connected, and sits down. Nobody ever sees a lease whose relay has no seat: it is taken over this
// connection. Should another relay's seat look the same, that one only seems to live longer than it does.
func (s *seat) open(ctx context.Context, pool *pgxpool.Pool, name, owner string) (*pgx.Conn, error) {
	if s.conn != nil && !s.conn.IsClosed() {
		return s.conn, nil
	}
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	s.conn = conn
	if _, err := conn.Exec(ctx, `SELECT pg_try_advisory_lock(`+seatOf(`$1`, `$2`)+`)`, name, owner); err != nil {
		s.leave()
		return nil, err
	}
	return conn, nil
}

// leave gives the seat up.
func (s *seat) leave() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_ = s.conn.Close(ctx)
	s.conn = nil
}
