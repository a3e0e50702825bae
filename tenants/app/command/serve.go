package command

import (
	"context"
	"log/slog"
	"os"

	"github.com/weirlog/weir/tenants/app"
)

type serve struct {
	app.Config `embed:""`
}

// Run serves until ctx ends.
func (c *serve) Run(ctx context.Context, logger *slog.Logger) error {
	c.Output = os.Stdout
	tenants, err := app.New(ctx, c.Config, logger)
	if err != nil {
		return err
	}
	return tenants.Run(ctx)
}
