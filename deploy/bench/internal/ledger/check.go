package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	ledger "github.com/weirlog/weir/ledger/app"
)

// measureChecks applies records without checking them, then measures
// the effort of an otherwise idle ledger to check all of them, minus a
// start with nothing to check. They are about as many as are applied
// between two rounds at the full rate.
func measureChecks(ctx context.Context, w *world, r *Result) error {
	if err := w.accept(ctx, w.config.Rebuilt, organizations); err != nil {
		return err
	}
	w.checked = time.Hour
	_, applied, err := w.apply(ctx, 1, 0)
	if err != nil {
		return err
	}
	w.checked = 0
	all, ranges, err := w.checkRound(ctx)
	if err == nil && ranges == 0 {
		err = errors.New("nothing was checked")
	}
	if err != nil {
		return err
	}
	none, _, err := w.checkRound(ctx)
	r.Checks = w.shareOf(all.less(none), applied)
	return err
}

// checkRound measures from the start of a ledger to the end of its
// first round of checks, which covers everything, and returns how many
// ranges it has checked.
func (w *world) checkRound(ctx context.Context) (took effort, ranges int64, err error) {
	before := w.effort()
	checker, err := w.replica(ctx, 0)
	if err != nil {
		return took, 0, err
	}
	err = w.beside(ctx, checker.Run, func(ctx context.Context) error {
		err := awaitRound(ctx, checker)
		took = w.effort().less(before)
		return err
	})
	return took, checker.Report().Ranges, err
}

// awaitRound waits for the end of a ledger's first round of checks.
func awaitRound(ctx context.Context, checker *ledger.App) error {
	for ticker := time.NewTicker(poll); ; {
		if report := checker.Report(); report.Rounds > 0 {
			ticker.Stop()
			if len(report.Violations) > 0 {
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
