package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// measureSpread measures how fast one replica applies records of 1,000
// organizations, and what takes the time.
func measureSpread(ctx context.Context, w *world, r *Result) error {
	if err := w.accept(ctx, w.config.Events, organizations); err != nil {
		return err
	}
	before, err := w.statements(ctx)
	if err != nil {
		return err
	}
	stop, err := startProfile(w.config.Profile)
	if err != nil {
		return err
	}
	found, took, err := w.apply(ctx, 1, 0)
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	after, err := w.statements(ctx)
	r.Spread, r.Effort, r.Statements = found, took.perRecord(w.config.Events), after.perRecord(before, w.config.Events)
	return err
}

// startProfile profiles this process into a file, if any, until stop.
func startProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot profile into %q: %w", path, err)
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
