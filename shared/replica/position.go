package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/lifecycle"
)

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
