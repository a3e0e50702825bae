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
	if url != "" {
		return url, func() error { return nil }, nil
	}
	server, err := postgres.Start(ctx, postgres.Config{Dir: filepath.Join(dir, "postgres"), Logger: logger})
	if err != nil {
		return "", nil, err
	}
	return server.URL(), func() error { return server.Stop(context.WithoutCancel(ctx)) }, nil
}
