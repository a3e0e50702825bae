package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A querier is a connection, or a pool of them.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// A position is how far a server has written its log, which no other server
// has.
type position struct{ server, lsn string }

func positionOf(ctx context.Context, primary querier) (at position, err error) {
	err = primary.QueryRow(ctx, `SELECT system_identifier::text, pg_current_wal_flush_lsn()::text FROM pg_control_system()`).Scan(&at.server, &at.lsn)
	return at, err
}

// A state is that of a replica, as a read needs it.
type state struct {
	role     string
	bypasses bool // row level security
	server   string
	standby  bool
	current  bool // it has replayed a position
}

// look asks a server whether it has replayed a position.
func (p position) look(ctx context.Context, replica querier) (s state, err error) {
	err = replica.QueryRow(ctx, `SELECT rolname, rolsuper OR rolbypassrls, system_identifier::text, pg_is_in_recovery(),
		coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)
		FROM pg_roles, pg_control_system() WHERE rolname = current_user`, p.lsn).Scan(&s.role, &s.bypasses, &s.server, &s.standby, &s.current)
	return s, err
}

var errBehind = errors.New("the replica lacks what the primary has")

// usable returns why a read may not go there, however long it waits.
func (p position) usable(s state) error {
	switch {
	case s.bypasses:
		return fmt.Errorf("role %q at the replica walks past row level security, which keeps tenants apart: name an ordinary one in %s", s.role, URLVariable)
	case s.server != p.server || !s.standby:
		return fmt.Errorf("the server of %s is no standby of the database", URLVariable)
	}
	return nil
}

// longestPause is between two looks.
const longestPause = 16 * time.Millisecond

// await waits until a server has replayed the position.
func (p position) await(ctx context.Context, replica querier) error {
	for pause := time.Millisecond; ; pause = min(2*pause, longestPause) {
		s, err := p.look(ctx, replica)
		if err == nil {
			err = p.usable(s)
		}
		if err != nil || s.current {
			return err
		}
		select {
		case <-ctx.Done():
			return errBehind
		case <-time.After(pause):
		}
	}
}
