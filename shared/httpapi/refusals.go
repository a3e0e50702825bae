package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Refusals paces answers with 429. Clients that never pause wait only for
// answers, and refusals are so cheap that thousands a second take a processor
// from the clients that are served. The first few are sent at once.
type Refusals struct {
	networks *fairshare.Table[netip.Prefix]
	held     atomic.Int64
}

// Limits of the pace. Beyond the most that are held, refusals are sent
// at once: memory is worth more than the pace.
const (
	refusalNetworks    = 1 << 16
	longestRefusal     = time.Second
	maxPendingRefusals = 2048
)

var refusalRate = fairshare.Rate{Burst: 500, PerSecond: 100}

// NewRefusals returns a pacer without any history.
func NewRefusals() *Refusals {
	return &Refusals{networks: fairshare.NewTable[netip.Prefix](refusalNetworks)}
}

// Pace returns once a client network may have the answer err: at once,
// unless it is one of very many 429s.
func (r *Refusals) Pace(ctx context.Context, now time.Time, network netip.Prefix, err error) {
	var problem *Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusTooManyRequests {
		return
	}
	r.Hold(ctx, now, network)
}

// Hold is Pace for a refusal shown on a page. A client that leaves is
// held too, as a request in flight on its connection: otherwise a client
// that resets its streams would be refused as fast as it can ask.
func (r *Refusals) Hold(ctx context.Context, now time.Time, network netip.Prefix) {
	wait := r.networks.Wait(now, network, refusalRate)
	if wait < longestRefusal { // so that a network's debt ends soon after its last request
		r.networks.Spend(now, network, 1, refusalRate)
	}
	if wait > 0 {
		r.hold(ctx, min(wait, longestRefusal))
	}
}

func (r *Refusals) hold(ctx context.Context, wait time.Duration) {
	defer r.held.Add(-1)
	if r.held.Add(1) > maxPendingRefusals {
		return
	}
	lifecycle.Pause(context.WithoutCancel(ctx), wait)
}
