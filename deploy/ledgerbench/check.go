package ledgerbench

import (
	"context"
	"fmt"
	"time"

	ledger "github.com/weirlog/weir/ledger/app"
)

// measureChecks applies records without checking them, and then takes the time in which a ledger that has nothing else to do checks all of them.
func measureChecks(ctx context.Context, w *world, r *Result) error {
	if err := w.accept(ctx, w.config.Events, organizations); err != nil {
		return err
	}
	w.checked = time.Hour
	applied, err := w.apply(ctx, 1, 0)
	if err != nil {
		return err
	}
	w.checked = 0
	checker, err := w.replica(ctx, 0)
	if err != nil {
		return err
	}
	began := time.Now()
	err = w.beside(ctx, checker.Run, func(ctx context.Context) error { return awaitRound(ctx, checker) })
	r.Checks = float64(applied) * time.Since(began).Seconds() / float64(w.config.Events)
	return err
}

// awaitRound waits for the end of the first round of checks, which is that of all there is.
func awaitRound(ctx context.Context, checker *ledger.App) error {
	for ticker := time.NewTicker(poll); ; {
		if report := checker.Report(); report.Rounds > 0 {
			ticker.Stop()
			if report.Ranges == 0 || len(report.Violations) > 0 {
				return fmt.Errorf("the checks end with %+v", report)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			ticker.Stop()
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
