package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

// Limits of the pause before a retry if the answer names none.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// Deliver posts a batch until it is accepted, refused for good, or ctx
// ends. It waits as long as each answer asks, else longer each time.
// The batch needs an idempotency key: with it, any number of attempts
// has the effect of one.
func (c *Client) Deliver(ctx context.Context, key string, batch Batch) (Accepted, error) {
	if batch.IdempotencyKey == "" {
		return Accepted{}, errors.New("cannot deliver a batch that has no idempotency key")
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		accepted, err := c.Post(ctx, key, batch)
		var problem *Problem
		if err == nil || errors.As(err, &problem) && !problem.Temporary() {
			return accepted, err
		}
		wait := pause/2 + rand.N(pause) // at random, so that clients do not return together
		if problem != nil && problem.RetryAfter > 0 {
			wait = problem.RetryAfter
		}
		if lifecycle.Pause(ctx, wait); ctx.Err() != nil {
			return Accepted{}, ctx.Err()
		}
	}
}
