package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/deploy/client"
)

// Config says what to send, and where.
type Config struct {
	APIKey       string
	ServiceToken string // billing:read
	Organization string
	Project      string
	Duration     time.Duration
	PerMinute    int           // posts a minute; the tier Scale admits 1,800
	Refresh      time.Duration // interval of progress
	Overwrite    bool          // progress stays on one line of a terminal
	Seed         uint64
}

// concurrent limits the posts in flight: it is enough that a waiting
// one delays no other.
const concurrent = 16

// Run sends traffic for the configured time, and writes progress, and
// at the end the balance and the groups, to out. It returns early,
// without an error, when ctx ends; accepted posts stay accepted.
func Run(ctx context.Context, api *client.Client, config Config, out io.Writer) error {
	before, err := api.Balance(ctx, config.ServiceToken, config.Organization)
	if err != nil {
		return fmt.Errorf("cannot read the balance: %w", err)
	}
	t := &tally{begun: time.Now()}
	if err := send(ctx, api, config, t, out); err != nil {
		return err
	}
	return summarise(context.WithoutCancel(ctx), api, config, before, t, out)
}

// send posts at an even pace until the time is up.
func send(ctx context.Context, api *client.Client, config Config, t *tally, out io.Writer) error {
	posts, ctx := errgroup.WithContext(ctx)
	posts.SetLimit(concurrent)
	defer func() { _ = posts.Wait() }() // the cause of ctx is its error
	pace := time.NewTicker(time.Minute / time.Duration(config.PerMinute))
	defer pace.Stop()
	show := time.NewTicker(config.Refresh)
	defer show.Stop()
	end := time.NewTimer(config.Duration)
	defer end.Stop()
	dice := newDice(config.Seed)
	for number := 0; ; {
		select {
		case <-ctx.Done():
			return finished(ctx, out, config, t)
		case <-end.C:
			_ = posts.Wait()
			return finished(ctx, out, config, t)
		case <-show.C:
			t.show(out, config)
		case <-pace.C:
			number++
			batch, err := nextBatch(dice, t.begun, number)
			if err != nil {
				return err
			}
			if !posts.TryGo(func() error { return t.post(ctx, api, config.APIKey, batch) }) {
				t.skip()
			}
		}
	}
}

// finished writes the last progress, and returns an error for a refusal
// but not for an interruption.
func finished(ctx context.Context, out io.Writer, config Config, t *tally) error {
	t.show(out, config)
	fmt.Fprintln(out)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// A sizedBatch is a batch with its counts.
type sizedBatch struct {
	client.Batch
	entries, failures int
}

func nextBatch(d dice, begun time.Time, number int) (sizedBatch, error) {
	body, entries, failures, err := pick(d, services).batch(d, time.Now())
	key := fmt.Sprintf("demo-%d-%d", begun.UnixNano(), number)
	return sizedBatch{client.Batch{Body: body, IdempotencyKey: key}, entries, failures}, err
}
