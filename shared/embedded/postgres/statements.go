package postgres

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// statementCounter is the extension that counts what statements
// take. It works only where the server has loaded it at its start.
const (
	statementCounter = "pg_stat_statements"
	preloaded        = "shared_preload_libraries"
)

// comeWithCounter reports whether the extension's library lies beside
// server binaries.
func comeWithCounter(bin string) bool {
	for _, libraries := range []string{"lib", "lib/postgresql"} {
		if found, _ := filepath.Glob(filepath.Join(filepath.Dir(bin), libraries, statementCounter+".*")); len(found) > 0 {
			return true
		}
	}
	return false
}

// countStatements makes the extension in Database, where it is loaded.
func (s *Server) countStatements(ctx context.Context) error {
	if s.settings[preloaded] != statementCounter {
		return nil
	}
	conn, err := pgx.Connect(ctx, s.url("postgres", Database))
	if err != nil {
		return fmt.Errorf("cannot have the local PostgreSQL count statements: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS "+statementCounter); err != nil {
		return fmt.Errorf("cannot have the local PostgreSQL count statements: %w", err)
	}
	return nil
}
