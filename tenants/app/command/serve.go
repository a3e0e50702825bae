package command

import (
	"context"
	"log/slog"

	"github.com/weirlog/weir/tenants/app"
)

type serve struct {
	app.Config `embed:""`
}

// Run serves until ctx ends.
func (c *serve) Run(ctx context.Context, logger *slog.Logger) error {
	tenants, err := app.New(ctx, c.Config, logger)
	if err != nil {
		return err
	}
	return tenants.Run(ctx)
}
