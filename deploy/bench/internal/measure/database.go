package measure

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/weirlog/weir/shared/embedded/postgres"
)

// Database returns the URL of the given database, or starts a server
// that flushes to disk as in production.
func Database(ctx context.Context, url, dir string, logger *slog.Logger) (string, func() error, error) {
	return database(ctx, url, postgres.Config{Dir: filepath.Join(dir, "postgres"), Logger: logger})
}

// CountingDatabase is Database; a server that it starts measures
// statements, if it can.
func CountingDatabase(ctx context.Context, url, dir string, logger *slog.Logger) (string, func() error, error) {
	return database(ctx, url, postgres.Config{Dir: filepath.Join(dir, "postgres"), Logger: logger, CountStatements: true})
}

func database(ctx context.Context, url string, config postgres.Config) (string, func() error, error) {
	if url != "" {
		return url, func() error { return nil }, nil
	}
	server, err := postgres.Start(ctx, config)
	if err != nil {
		return "", nil, err
	}
	return server.URL(), func() error { return server.Stop(context.WithoutCancel(ctx)) }, nil
}
