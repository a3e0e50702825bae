package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// A Source is a table whose rows a relay publishes in the order of their positions.
type Source struct {
	Relay string
	Table string
}

// A Backlog is what a relay still has to publish, and what it has
// published again.
type Backlog struct {
	Rows int64 // counted to at most 100,000
	Held bool  // a process has the lease

	Lost        string        // what a log had lost when the relay last found a loss; empty: it never did
	Ago         time.Duration // since then
	Republished int64         // messages, since ever
}

const maxCounted = 100_000

// Backlog counts in the schema of tx.
func (s Source) Backlog(ctx context.Context, tx pgx.Tx) (b Backlog, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return b, err
	}
	err = tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM (SELECT FROM `+pgx.Identifier{s.Table}.Sanitize()+`
			WHERE position > coalesce((SELECT position FROM bus_relays WHERE name = $1), 0) LIMIT $2) AS waiting),
		EXISTS (SELECT FROM bus_relays WHERE name = $1 AND expires_at > clock_timestamp())`, s.Relay, maxCounted).Scan(&b.Rows, &b.Held)
	if err != nil {
		return b, fmt.Errorf("cannot count what %s has still to publish: %w", s.Relay, err)
	}
	err = tx.QueryRow(ctx, `SELECT lost, clock_timestamp() - lost_at, republished FROM bus_relays WHERE name = $1 AND lost_at IS NOT NULL`, s.Relay).
		Scan(&b.Lost, &b.Ago, &b.Republished)
	if err := ignoreNoRows(err); err != nil {
		return b, fmt.Errorf("cannot see what %s has published again: %w", s.Relay, err)
	}
	return b, nil
}
