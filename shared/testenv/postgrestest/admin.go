package postgrestest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// withAdmin runs do on a connection that may create databases. Its
// context outlives the test's, for cleanups.
func withAdmin(t testing.TB, admin string, do func(context.Context, *pgx.Conn) error) {
	t.Helper()
	if err := asAdmin(context.WithoutCancel(t.Context()), admin, do); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}

func asAdmin(ctx context.Context, admin string, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := admins.take(ctx, admin)
	if err != nil {
		return fmt.Errorf("the test database server is not there: %w", err)
	}
	if err := do(ctx, conn); err != nil {
		conn.Close(ctx)
		return fmt.Errorf("cannot prepare a test database: %w", err)
	}
	admins.give(ctx, admin, conn)
	return nil
}

// admins are this process's connections that may create databases.
var admins = idleConns{of: map[string][]*pgx.Conn{}}

// idleConns keeps connections, by their address, for reuse: a new one
// costs the server as much as copying a database.
type idleConns struct {
	mu sync.Mutex
	of map[string][]*pgx.Conn
}

// maxIdle bounds the connections kept for each address.
const maxIdle = 2

// take returns a connection that works: a test may have killed the
// server since the last use.
func (c *idleConns) take(ctx context.Context, address string) (*pgx.Conn, error) {
	for conn := c.pop(address); conn != nil; conn = c.pop(address) {
		if conn.Ping(ctx) == nil {
			return conn, nil
		}
		conn.Close(ctx)
	}
	return pgx.Connect(ctx, address)
}

func (c *idleConns) pop(address string) *pgx.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := c.of[address]
	if len(idle) == 0 {
		return nil
	}
	last := len(idle) - 1
	c.of[address] = idle[:last]
	return idle[last]
}

func (c *idleConns) give(ctx context.Context, address string, conn *pgx.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of[address]) >= maxIdle {
		conn.Close(ctx)
		return
	}
	c.of[address] = append(c.of[address], conn)
}
