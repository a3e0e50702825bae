package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/process"
)

func main() {
	process.Once("weir-ledger-verify",
		"Compares every balance with its postings, every posting with what was applied, and that with the log, as far as the log is kept, "+
			"and makes the chains of hashes again from what was charged and decided. "+
			"It reads everything and changes nothing; the ledger may run meanwhile.", run)
}

func run(ctx context.Context, config app.OfflineConfig, _ *slog.Logger) error {
	violations, err := app.Verify(ctx, config.Ledger())
	if err != nil {
		return err
	}
	for _, violation := range violations {
		fmt.Printf("%s: %s\n", violation.Invariant, violation.Detail)
	}
	if len(violations) > 0 {
		return fmt.Errorf("%d invariants do not hold", len(violations))
	}
	fmt.Println("every invariant holds")
	return nil
}
