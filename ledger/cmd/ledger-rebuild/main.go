package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/process"
)

func main() {
	process.Once("weir-ledger-rebuild",
		"Rebuilds the ledger from the log and the decisions that it keeps, in the schema ledger_rebuilding beside it, and compares balances, grants, "+
			"budgets, statements, usage and chains of both. If they are the same, it renames the schema to ledger_rebuilt. "+
			"It changes nothing of the ledger, which may run meanwhile. "+
			"Where the log or the decisions lack their beginning, it begins at a checkpoint of the ledger; it fails where there is none that they reach.", run)
}

func run(ctx context.Context, config app.OfflineConfig, logger *slog.Logger) error {
	made, err := app.Rebuild(ctx, config.Ledger(), logger)
	if err != nil {
		return err
	}
	if made.Skipped > 0 {
		fmt.Printf("%d records can't be applied: they are parked\n", made.Skipped)
	}
	for _, difference := range made.Differences {
		fmt.Println(difference)
	}
	if len(made.Differences) > 0 {
		return fmt.Errorf("the rebuilt ledger differs, and is left in ledger_rebuilding: the first %d differences of %d things are above",
			len(made.Differences), made.Things)
	}
	from := "the log"
	if !made.From.IsZero() {
		from = "the checkpoint of " + made.From.Format(time.RFC3339) + ", the log since"
	}
	fmt.Printf("the same: %d things, rebuilt from %s and %d decisions\n", made.Things, from, made.Decisions)
	return nil
}
