// Command grouping runs Weir's error grouping.
package main

import (
	"context"
	"log/slog"

	"github.com/weirlog/weir/grouping/app"
	"github.com/weirlog/weir/shared/process"
)

func main() {
	process.Main("weir-grouping",
		"The error grouping of Weir: it recognises which of the errors in the logs are the same, counts them, and answers for the groups. "+
			"It needs Kafka and Postgres. Several may run against one database and share the work.", run)
}

func run(ctx context.Context, config app.Config, logger *slog.Logger) error {
	grouping, err := app.New(ctx, config, logger)
	if err != nil {
		return err
	}
	return grouping.Run(ctx)
}
