// Command tenants runs Weir's organizations, projects, API keys and service tokens.
package main

import (
	"context"
	"log/slog"

	"github.com/weirlog/weir/shared/process"
	"github.com/weirlog/weir/tenants/app"
)

const description = "Organizations, projects, API keys and service tokens of Weir. It needs Kafka and Postgres; " +
	"every setting is a flag or an environment variable."

func main() {
	process.Main("tenants", description, run)
}

func run(ctx context.Context, config app.Config, logger *slog.Logger) error {
	tenants, err := app.New(ctx, config, logger)
	if err != nil {
		return err
	}
	return tenants.Run(ctx)
}
