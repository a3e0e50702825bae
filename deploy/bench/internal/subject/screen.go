package subject

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A Screen shows the live tail of a tenant.
type Screen struct {
	newest atomic.Int64  // stamp of the newest entry shown
	told   chan struct{} // something was shown since it was last asked
}

// NewScreen opens a tail, and again whenever it ends, until ctx does.
func NewScreen(ctx context.Context, api *client.Client, t Tenant) *Screen {
	s := &Screen{told: make(chan struct{}, 1)}
	go func() {
		const pause = 100 * time.Millisecond // after a failure, which those who wait for an entry notice
		for ; ctx.Err() == nil; lifecycle.Pause(ctx, pause) {
			_ = api.Tail(ctx, t.Key, client.LogsQuery{Project: t.Project}, s.show)
		}
	}()
	return s
}

func (s *Screen) show(event client.Event) error {
	if event.Entry != nil {
		s.newest.Store(max(s.newest.Load(), StampOf(string(event.Entry.Entry))))
		select {
		case s.told <- struct{}{}:
		default:
		}
	}
	return nil
}

// Await waits until an entry with a stamp is shown.
func (s *Screen) Await(ctx context.Context, stamp int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, viewTimeout, fmt.Errorf("the tail does not show an entry %s after its answer", viewTimeout))
	defer cancel()
	for s.newest.Load() < stamp {
		select {
		case <-s.told:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), context.Cause(ctx))
		}
	}
	return nil
}
