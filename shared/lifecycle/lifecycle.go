package lifecycle

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
)

// Run runs every function until ctx ends or one fails; then it cancels
// the others and waits for all. A function may end with its context's
// error. Run returns the first real failure, or nil.
func Run(ctx context.Context, functions ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, function := range functions {
		group.Go(func() error { return orderly(ctx, function(ctx)) })
	}
	return group.Wait()
}

// orderly hides the error of a function whose context has ended.
func orderly(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
