package postgrestest

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/internal/docker"
	"github.com/weirlog/weir/shared/testenv/port"
)

// inContainer returns the superuser's URL of a PostgreSQL in a container.
func inContainer(t testing.TB) (admin string, _ fault.Process, err error) {
	t.Helper()
	port, err := port.Free()
	if err != nil {
		return "", nil, err
	}
	password := rand.Text()
	admin = fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres?sslmode=disable", password, port)
	p, err := docker.Run(docker.PostgresImage(), 5432, port, map[string]string{"POSTGRES_PASSWORD": password}, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, admin)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		return "", nil, err
	}
	p.RemoveAtEnd(t)
	return admin, p, nil
}
