package command

import (
	"context"
	"log/slog"

	"github.com/weirlog/weir/grouping/app"
)

// Commands are those of the program.
type Commands struct {
	Serve       serve       `cmd:"" default:"withargs" help:"Group errors and answer for the groups. What happens where no command is given."`
	Fingerprint fingerprint `cmd:"" help:"Print how each entry of standard input would be grouped, and why."`
}

type serve struct {
	app.Config `embed:""`
}

// Run serves until ctx ends.
func (c *serve) Run(ctx context.Context, logger *slog.Logger) error {
	grouping, err := app.New(ctx, c.Config, logger)
	if err != nil {
		return err
	}
	return grouping.Run(ctx)
}
