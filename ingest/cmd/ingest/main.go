package main

import (
	"context"
	"log/slog"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/process"
)

func main() {
	process.Main("weir-ingest",
		"The front door of Weir: it takes log entries in over HTTPS, keeps what was accepted, and finds it again. "+
			"It needs Kafka and Postgres. Several may run side by side and share the work.", run)
}

func run(ctx context.Context, config app.Config, logger *slog.Logger) error {
	ingest, err := app.New(ctx, config, logger)
	if err != nil {
		return err
	}
	return ingest.Run(ctx)
}
