package main

import (
	"context"
	"log/slog"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/process"
)

func main() {
	process.Main("weir-ledger",
		"The quota ledger of Weir: it charges what was accepted, says what each organization may still send, and answers for balances. "+
			"It needs Kafka and Postgres. Several may run against one database and share the work.", run)
}

func run(ctx context.Context, config app.Config, logger *slog.Logger) error {
	ledger, err := app.New(ctx, config, logger)
	if err != nil {
		return err
	}
	return ledger.Run(ctx)
}
