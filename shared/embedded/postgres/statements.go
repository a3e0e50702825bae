package postgres

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// statementCounter is the extension that measures statements. It works
// only if the server has loaded it at its start.
const (
	statementCounter = "pg_stat_statements"
	preloaded        = "shared_preload_libraries"
)

// comeWithCounter reports whether server binaries include
// the extension's library.
func comeWithCounter(bin string) bool {
	for _, libraries := range []string{"lib", "lib/postgresql"} {
		if found, _ := filepath.Glob(filepath.Join(filepath.Dir(bin), libraries, statementCounter+".*")); len(found) > 0 {
			return true
		}
	}
	return false
}

// countStatements creates the extension in Database, if it is loaded.
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
