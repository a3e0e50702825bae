package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// channel names the notifications of a schema.
const channel = `'weir outbox ' || current_schema()`

// Announce is a statement by which a transaction tells those who Listen, at
// its commit, that it added rows to publish.
const Announce = `SELECT pg_notify(` + channel + `, '')`

// Listen makes conn hear what is announced in its schema.
func Listen(ctx context.Context, conn *pgx.Conn) error {
	var name string
	if err := conn.QueryRow(ctx, `SELECT `+channel).Scan(&name); err != nil {
		return fmt.Errorf("cannot find the schema to listen to: %w", err)
	}
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("cannot listen to %q: %w", name, err)
	}
	return nil
}

// Hear waits on a connection that listens until something is announced or ctx
// ends. What was announced meanwhile counts as one. The
// connection can be used further unless it is lost.
func Hear(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := conn.WaitForNotification(ctx)
	for cancel(); err == nil; {
		_, err = conn.WaitForNotification(ctx) // returns only what has arrived
	}
}
